// SPDX-License-Identifier: Apache-2.0
//
// A library that is opened while the program runs, if it is there.
//
//   const SharedLibrary driver("libcuda.so.1");
//   if (!driver.opened()) return driver.reason();
//   if (const auto getVersion = driver.function<int(int*)>("cuDriverGetVersion")) getVersion(&version);
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stagecraft::cli {

class SharedLibrary {
public:
    // Whether libraries that this one opens by itself may use its functions, as the plug-ins of MPI do.
    enum class Symbols : std::uint8_t { Own, Shared };
    explicit SharedLibrary(const std::string& nameOrPath, Symbols symbols = Symbols::Own);
    SharedLibrary(const SharedLibrary&) = delete;
    SharedLibrary& operator=(const SharedLibrary&) = delete;
    // Stays loaded: device libraries keep threads and exit handlers that outlive a dlclose().
    ~SharedLibrary() = default;

    [[nodiscard]] bool opened() const { return handle_ != nullptr; }
    [[nodiscard]] const std::string& reason() const { return reason_; } // why it could not be opened
    [[nodiscard]] std::filesystem::path file() const;                   // with symbolic links followed

    template <class Signature>
    [[nodiscard]] Signature* function(const char* name) const
    {
        return reinterpret_cast<Signature*>(symbol(name));
    }

private:
    [[nodiscard]] void* symbol(const char* name) const; // null where it has none of that name

    void* handle_ = nullptr;
    std::string reason_;
};

} // namespace stagecraft::cli
