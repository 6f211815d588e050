// SPDX-License-Identifier: Apache-2.0
//
// Every way to use the command line wrongly ends with the right code and a message that names thing, value and remedy.
#include "tests/cli/expectations.h"

namespace stagecraft::cli::test {

namespace {

using testing::HasSubstr;

struct Wrong {
    std::vector<std::string> arguments;
    int exitCode;
    const char* message;
};
void PrintTo(const Wrong& wrong, std::ostream* out)
{
    for (const std::string& argument : wrong.arguments) *out << argument << ' ';
}

class WrongUse : public testing::TestWithParam<Wrong> {};

TEST_P(WrongUse, IsExplained) { expectRefusal(GetParam().arguments, GetParam().exitCode, GetParam().message); }

INSTANTIATE_TEST_SUITE_P(
    CommandLine, WrongUse,
    testing::Values(
        Wrong{{}, 2, "--help"}, Wrong{{"fly"}, 2, "'fly' is no verb"}, Wrong{{"--fly"}, 2, "--fly"},
        Wrong{{"simulate", "--fly"}, 2, "--fly"}, Wrong{{"simulate", "hello", "mlp"}, 2, "mlp"},
        Wrong{{"simulate", "--json=yes"}, 2, "json"}, Wrong{{"simulate", "--ranks"}, 2, "--ranks"},
        Wrong{{"simulate", "--ranks", "0"}, 2, "--ranks 0 is not allowed; 1 to 16384"},
        Wrong{{"simulate", "--ranks", "-2"}, 2, "--ranks -2 is not allowed"},
        Wrong{{"simulate", "--ranks", "four"}, 2, "--ranks four: not a whole number"},
        Wrong{{"simulate", "--ranks", "4.5"}, 2, "--ranks 4.5: not a whole number"},
        Wrong{{"simulate", "--ranks", "99999999999999999999"}, 2, "--ranks 99999999999999999999 is not allowed"},
        Wrong{{"simulate", "--ranks", "16384", "--chunks", "2"}, 2, "32768 stages"},
        Wrong{{"simulate", "--microbatches", "0"}, 2, "--microbatches 0 is not allowed"},
        Wrong{{"simulate", "--forward", "1"}, 2, "--forward: \"1\" has no unit"},
        Wrong{{"simulate", "--forward", "-1ms"}, 2, "--forward"}, Wrong{{"simulate", "--forward", "nanms"}, 2, "--forward"},
        Wrong{{"simulate", "--forward", "1e400s"}, 2, "--forward"},
        Wrong{{"simulate", "--forward", "9223372036854775807ns"}, 2, "too large"},
        Wrong{{"simulate", "--backward", "2 weeks"}, 2, "--backward"},
        Wrong{{"simulate", "--input-grad", "1ms"}, 2, "give --weight-grad too"},
        Wrong{{"simulate", "--weight-grad", "1ms"}, 2, "give --input-grad too"},
        Wrong{{"simulate", "--backward", "3ms", "--input-grad", "1ms", "--weight-grad", "1ms"}, 2, "leave --backward out"},
        Wrong{{"simulate", "--stage-scale", "1,,2"}, 2, "--stage-scale: '' is no factor"},
        Wrong{{"simulate", "--stage-scale", "1,nan,1,1"}, 2, "'nan' is no factor"},
        Wrong{{"simulate", "--stage-scale", "1,-1,1,1"}, 2, "'-1' is no factor"},
        Wrong{{"simulate", "--stage-scale", "1,2"}, 2, "2 entries, the plan has 4 stages"},
        Wrong{{"simulate", "--stage-scale", "1e308,1,1,1"}, 2, "'1e308' is no factor; give one number from 0 to 1e+06 per stage"},
        Wrong{{"simulate", "--latency", "fast"}, 2, "--latency"},
        Wrong{{"simulate", "--latency", "9000000000s"}, 2, "latency comes to 9e+09 s; at most 1e+06 s"},
        Wrong{{"simulate", "--activation-bytes", "8000000000GiB"}, 2, "activation_bytes is 8589934592000000000 bytes; 0 to"},
        Wrong{{"simulate", "--activation-bytes", "1MiB", "--wgrad-bytes", "2MiB"}, 2, "its forward keeps only 1 MiB"},
        Wrong{{"simulate", "--wgrad-bytes", "2MiB"}, 2, "give activation_bytes"},
        Wrong{{"simulate", "--bandwidth", "25"}, 2, "--bandwidth"},
        Wrong{{"simulate", "--bandwidth", "25GB/s"}, 2, "give --boundary-bytes, or a plan with a model"},
        Wrong{{"simulate", "--boundary-bytes", "-1"}, 2, "--boundary-bytes"},
        Wrong{{"simulate", "--activation-bytes", "1 XB"}, 2, "--activation-bytes"},
        Wrong{{"simulate", "--jitter", "150%"}, 2, "--jitter"}, Wrong{{"simulate", "--jitter", "nan"}, 2, "--jitter"},
        Wrong{{"simulate", "--seed", "-1"}, 2, "--seed -1 is not allowed; a whole number from 0 to 18446744073709551615"},
        Wrong{{"simulate", "--seed", "18446744073709551616"}, 2, "--seed 18446744073709551616 is not allowed"},
        Wrong{{"simulate", "--slices", "2"}, 2, "2 slices of a sequence are not allowed"},
        Wrong{{"simulate", "--slices", "0"}, 2, "--slices 0 is not allowed; 1 to 1024"},
        Wrong{{"simulate", "--memory-limit", "1GiB"}, 2, "--memory-limit 1GiB: schedule 1f1b does not plan for a limit, zb-auto and zb-v-auto do;"},
        Wrong{{"simulate", "--group", "4"}, 2, "--group 4: schedule 1f1b does not go in groups of micro-batches, interleaved and pipedream-2bw do"},
        Wrong{{"simulate", "--schedule", "pipedream-2bw", "--group", "3"}, 2, "the nearest size that fits is 4"},
        Wrong{{"simulate", "--slicing", "balanced"}, 2, "--slicing balanced: schedule 1f1b takes sequences whole"},
        Wrong{{"simulate", "--schedule", "seq1f1b", "--slicing", "odd"}, 2, "not known; equal or balanced"},
        Wrong{{"simulate", "--schedule", "seq1f1b", "--attention-share", "2"}, 2, "--attention-share 2 is not allowed; 0 to 1"},
        Wrong{{"simulate", "--offload", "2"}, 2, "--offload 2 is not allowed; 0 to 1"},
        Wrong{{"simulate", "--schedule", "bpipe", "--recompute", "full"}, 2, "take one of the two"},
        Wrong{{"simulate", "--bandwidth", "1e300GB/s", "--boundary-bytes", "1MiB"}, 2, "\"1e300GB/s\" is too large for a bandwidth"},
        Wrong{{"simulate", "--bandwidth", "0GB/s", "--boundary-bytes", "1MiB"}, 2, "a bandwidth must be above 0"},
        Wrong{{"simulate", "--schedule", "bpipe", "--offload", "0.5"}, 2, "schedule bpipe moves activations itself; leave it out"},
        Wrong{{"run", "hello", "--loss-scale", "3"}, 2, "--loss-scale 3 is not allowed; a power of two from 1 to 2^60"},
        Wrong{{"run", "hello", "--loss-scale", "0.5"}, 2, "--loss-scale 0.5 is not allowed"},
        Wrong{{"run", "hello", "--clip-norm", "-1"}, 2, "--clip-norm -1 is not allowed; a number from 0 (no clipping) to 1e+30"},
        Wrong{{"simulate", "--vertical-sync"}, 2, "--vertical-sync: schedule 1f1b does not keep the weights of each forward, pipedream does; leave it out"},
        Wrong{{"simulate", "--concatenation", "halving"}, 2, "--concatenation halving: schedule 1f1b does not concatenate units, chimera does"},
        Wrong{{"simulate", "--schedule", "chimera", "--concatenation", "glued"}, 2, "not known; direct, doubling or halving"},
        Wrong{{"simulate", "--schedule", "interleaved", "--group", "-1"}, 2, "--group -1 is not allowed"},
        Wrong{{"simulate", "--schedule", "interleaved", "--chunks", "2", "--group", "3"}, 2, "a group takes 4 to 8"},
        Wrong{{"simulate", "--schedule", "zb-auto", "--memory-limit", "much"}, 2, "--memory-limit"},
        Wrong{{"simulate", "--schedule", "zb-auto", "--activation-bytes", "1MiB", "--memory-limit", "0"}, 2, "--memory-limit 0: a rank keeps"},
        Wrong{{"simulate", "--schedule", "zb-v-auto", "--chunks", "2", "--memory-limit", "0B"}, 2, "--memory-limit 0B: a rank keeps"},
        Wrong{{"simulate", "gpt-small", "--schedule", "seq1f1b", "--slices", "129"}, 2, "the model's has 128 positions; use at most that many"},
        Wrong{{"simulate", "--schedule", "zb-auto", "--memory-limit", "1GiB"}, 2, "nothing says what a forward keeps"},
        Wrong{{"simulate", "--schedule", "zb-auto", "--memory-limit", "1KiB", "--activation-bytes", "2KiB"}, 2, "the nearest is 2KiB"},
        Wrong{{"run", "hello", "--send", "rendezvous"}, 2, "validate FILE --send rendezvous"},
        Wrong{{"run", "hello", "--handoff", "mail"}, 2, "--handoff mail: not available; there is: boxes, mutex, ring, semaphore"},
        Wrong{{"run", "hello", "--slowdown", "1,0.5"}, 2, "--slowdown: '0.5' is no factor; give one number from 1 to 1000 per stage"},
        Wrong{{"run", "hello", "--device", "cuda", "--gpus", "0,x"}, 2, "--gpus: 'x' is not allowed; for each rank the number of a GPU from 0 to 127, or cpu: 0,0,1,cpu"},
        Wrong{{"run", "hello", "--device", "cuda", "--gpus", "0"}, 2, "run.gpus: 1 number given, and the plan has 2 ranks: one for each"},
        Wrong{{"run", "hello", "--tf32", "maybe"}, 2, "--tf32"},
        Wrong{{"run", "hello", "--transport", "mail"}, 2, "--transport mail: not available; there is: auto, nccl, host"},
        Wrong{{"simulate", "hello", "--precision", "fp16"}, 2, "--precision fp16: not known; fp32 or bf16"},
        Wrong{{"run", "hello", "--tracing", "all"}, 2, "--tracing all: not available; there is: host, events, kernels, api"},
        Wrong{{"run", "hello", "--slowdown", "a,1"}, 2, "--slowdown: 'a' is no factor; give one number from 1 to 1000 per stage"},
        Wrong{{"simulate", "--send", "pigeon"}, 2, "--send: 'pigeon' is not known; one of buffered, rendezvous, channel"},
        Wrong{{"simulate", "--transfers", "mail"}, 2, "one of free, copy-lane, ranks"},
        Wrong{{"simulate", "--recompute", "half"}, 2, "one of none, full"},
        Wrong{{"simulate", "--rank-scale", "1,2"}, 2, "machine.rank_scale: it has 2 entries, the plan has 4 ranks; give one per rank"},
        Wrong{{"simulate", "--rank-scale", "1,x,1,1"}, 2, "'x' is no factor; give one number from 0 to 1e+06 per rank"},
        Wrong{{"simulate", "--late-start", "1ms,2"}, 2, "--late-start"},
        Wrong{{"simulate", "--replicas", "0"}, 2, "--replicas 0 is not allowed; 1 to 1048576"},
        Wrong{{"simulate", "--ranks-per-node", "2", "--node-bandwidth", "1GB/s"}, 2, "machine.node_bandwidth: it needs the size of what is sent"},
        Wrong{{"simulate", "--steps", "0"}, 2, "--steps 0 is not allowed; 1 to 10000"},
        // 2 · 4 · 10000 actions of the 20 million that a trace may have
        Wrong{{"simulate", "--steps", "10000", "--microbatches", "10000"}, 2, "a step of this plan has 80000 actions; at most 250 steps are possible"},
        Wrong{{"simulate", "--bucket-bytes", "0B"}, 2, "machine.bucket_bytes"},
        Wrong{{"simulate", "--schedule", "zb-h9"}, 2, "there are: naive, gpipe, gpipe-lifo, 1f1b, "},
        Wrong{{"simulate", "--schedule", "custom"}, 2, "holds no schedule of its own"},
        Wrong{{"simulate", "--schedule", "1f1b", "--chunks", "2"}, 2, "2 chunks"},
        Wrong{{"simulate", "--schedule", "interleaved"}, 2, "use 2 chunks"},
        Wrong{{"simulate", "nowhere.plan.json"}, 1, "neither a plan file nor a preset"},
        Wrong{{"simulate", "/tmp"}, 1, "/tmp"}, Wrong{{"simulate", "/dev/null"}, 1, "/dev/null"},
        Wrong{{"simulate", "gpt-small", "--ranks", "11"}, 2, "at most 10 stages"},
        Wrong{{"simulate", ""}, 2, "is empty"}, Wrong{{"simulate", "--trace", ""}, 2, "is empty"},
        Wrong{{"analyze", ""}, 2, "is empty"}, Wrong{{"simulate", "--schedule", "/dev/null"}, 1, "/dev/null"},
        Wrong{{"simulate", "/dev/zero"}, 1, "/dev/zero: it is longer than 256 MiB"},
        Wrong{{"simulate", "--trace", "trace.xml"}, 2, ".strace .json .json.gz .csv"},
        Wrong{{"simulate", "--trace", "/nowhere/trace.json"}, 2, "make it first"}, Wrong{{"validate"}, 2, "FILE"},
        Wrong{{"schedule", "--sharding", "some"}, 2, "none, zero1, zero2 or zero3"},
        Wrong{{"schedule", "--schedule", "pipedream", "--sharding", "zero3"}, 2, "updates its weights within a step"},
        Wrong{{"schedule", "--order", "random"}, 2, "pytorch, megatron or deferred"},
        Wrong{{"schedule", "--schedule", "zb-h1", "--order", "megatron"}, 2, "Megatron-LM has no exchanges for it"},
        Wrong{{"schedule", "--form", "morse"}, 2, "pytorch or deepspeed"},
        Wrong{{"schedule", "--form", "deepspeed", "--order", "megatron"}, 2, "--order does not go with --form deepspeed"},
        Wrong{{"schedule", "--schedule", "gpipe", "--form", "deepspeed"}, 2, "only for 1f1b and forward-only"},
        Wrong{{"validate", "x", "--send", "pigeon"}, 2, "buffered, rendezvous or channel"}, Wrong{{"analyze"}, 2, "TRACE"},
        Wrong{{"analyze", "nowhere.json"}, 1, "nowhere.json"}, Wrong{{"analyze", "/dev/null"}, 1, "/dev/null"},
        Wrong{{"analyze", "a.json", "b.json"}, 1, "a.json"}, Wrong{{"convert", "a.json"}, 2, "the file to write"},
        Wrong{{"convert", "a.strace", "b.xml"}, 2, "b.xml"},
        Wrong{{"convert", "nowhere.strace", "b.json"}, 1, "nowhere.strace"},
        Wrong{{"convert", "a", "b", "c.json"}, 1, "\"a\""}, Wrong{{"render", "hello"}, 2, "OUT"},
        Wrong{{"render", "hello", "picture.gif"}, 2, ".png, .svg or .pdf"}, Wrong{{"list"}, 2, "WHAT"},
        Wrong{{"list", "colours"}, 2, "schedules, models, layers or plans"}, Wrong{{"bench", "marketing"}, 2, "there is: simulate"},
        Wrong{{"doctor", "now"}, 2, "now"}, Wrong{{"worker", "now"}, 2, "now"}, Wrong{{"run"}, 2, "PLAN"},
        Wrong{{"run", "hello", "--mode", "dreaming"}, 2, "threads, emulated"},
        Wrong{{"run", "hello", "--device", "abacus"}, 2, "cpu"}, Wrong{{"run", "hello", "--steps", "0"}, 2, "--steps 0"},
        Wrong{{"run", "hello", "--check", "maybe"}, 2, "off, first, all"},
        Wrong{{"run", "hello", "--checkpoint-every", "3"}, 2, "give --checkpoint DIR"}));

TEST(CommandLine, TellsAFullDisk)
{
    const Output output = shell("\"$CLI\" simulate > /dev/full");
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr("No space left on device"));
}

TEST(CommandLine, TellsAClosedOutput)
{
    const Output output = shell("\"$CLI\" simulate >&-");
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr("the output cannot be written"));
}

TEST(CommandLine, EndsQuietlyWhenItsReaderGoesAway)
{
    const Output output = shell("\"$CLI\" schedule --ranks 64 --microbatches 4096 | head -c 10");
    EXPECT_EQ(output.out, "0F0,0F1,0F");
    EXPECT_EQ(output.err, "");
}

} // namespace

} // namespace stagecraft::cli::test
