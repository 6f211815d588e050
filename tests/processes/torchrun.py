# SPDX-License-Identifier: Apache-2.0
"""torchrun, from the wheel that gives LibTorch (torch_judge.sh sets its environment up)."""
from torch.distributed.run import main

main()
