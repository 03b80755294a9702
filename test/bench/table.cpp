// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

namespace devshare::bench {
namespace {

constexpr char separator = '\t';

std::array<std::string, 5> cells(const Row& row) {
  return {row.measure, row.value, row.goal, in_words(row.verdict), row.control};
}

// Columns as wide on the screen as they are in characters, not in bytes.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

Row not_measured(std::string measure, const std::string& why) {
  return {std::move(measure), "not measured: " + why.substr(0, why.find('\n')), "–", Verdict::not_valid, "–"};
}

std::string in_words(Verdict verdict) {
  switch (verdict) {
    case Verdict::met: return "met";
    case Verdict::missed: return "missed";
    case Verdict::not_valid: return "void";
    case Verdict::for_information: return "–";
  }
  return "?";
}

std::string to_line(const Row& row) {
  std::string line = std::to_string(static_cast<int>(row.verdict));
  for (const std::string& part : {row.measure, row.value, row.goal, row.control}) line += separator + part;
  return line;
}

Row from_line(const std::string& line) {
  std::istringstream parts(line);
  std::string verdict;
  Row row;
  std::getline(parts, verdict, separator);
  for (std::string* part : {&row.measure, &row.value, &row.goal, &row.control}) std::getline(parts, *part, separator);
  row.verdict = static_cast<Verdict>(std::stoi(verdict));
  return row;
}

std::string to_markdown(const std::vector<Row>& rows) {
  std::vector<std::array<std::string, 5>> lines{{"measure", "measured", "goal", "verdict", "A/A control"}};
  for (const Row& row : rows) lines.push_back(cells(row));
  std::array<std::size_t, 5> widths{};
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  }
  std::ostringstream out;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      out << "| " << lines[n][i] << std::string(widths[i] - width(lines[n][i]) + 1, ' ');
    }
    out << "|\n";
    if (n != 0) continue;
    for (const std::size_t one : widths) out << "|" << std::string(one + 2, '-');
    out << "|\n";
  }
  return out.str();
}

}  // namespace devshare::bench
