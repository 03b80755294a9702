// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: every file of a corpus directory, then as many mutations of them as asked for,
// the same ones on every run and every machine.
//
//   fuzz_wire_request CORPUS_DIRECTORY MUTATIONS
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

// Sorted, since a directory has no order of its own.
std::vector<Input> read_corpus(const char* directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// The copy is exactly as long as the input, so that AddressSanitizer sees a read of one byte too many.
void run(const Input& input) {
  Input exact;
  exact.reserve(input.size());
  exact = input;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

class Mutator {
 public:
  Input mutate(Input input, const std::vector<Input>& corpus) {
    for (std::uint32_t steps = 1 + below(4); steps > 0; --steps) step(input, corpus);
    return input;
  }
  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

 private:
  void step(Input& input, const std::vector<Input>& corpus) {
    switch (below(6)) {
      case 0:
        if (!input.empty()) input[below(input.size())] ^= static_cast<std::uint8_t>(1U << below(8));
        return;
      case 1:
        if (!input.empty()) input[below(input.size())] = static_cast<std::uint8_t>(below(256));
        return;
      case 2:  // the numbers at which code goes wrong
        for (std::size_t i = below(input.size() + 1), n = 1U << below(4); i < input.size() && n > 0; ++i, --n) {
          input[i] = below(2) == 0 ? 0x00 : 0xff;
        }
        return;
      case 3:
        input.resize(below(input.size() + 1));
        return;
      case 4:
        input.insert(input.begin() + below(input.size() + 1), static_cast<std::uint8_t>(below(256)));
        return;
      default: {  // the head of this one and the tail of another
        const Input& other = corpus[below(corpus.size())];
        const std::size_t at = below(std::min(input.size(), other.size()) + 1);
        input.resize(at);
        input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(at), other.end());
      }
    }
  }

  std::mt19937 random_{1};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY MUTATIONS\n", argv[0]);
    return 2;
  }
  const std::vector<Input> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", argv[1]);
    return 2;
  }
  for (const Input& input : corpus) run(input);
  Mutator mutator;
  const long mutations = std::atol(argv[2]);
  for (long i = 0; i < mutations; ++i) run(mutator.mutate(corpus[mutator.below(corpus.size())], corpus));
  std::printf("%zu inputs, %ld mutations\n", corpus.size(), mutations);
  return 0;
}
