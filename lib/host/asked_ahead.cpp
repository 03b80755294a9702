// SPDX-License-Identifier: Apache-2.0
#include "asked_ahead.hpp"

#include "key.hpp"
#include "profile.hpp"
#include "token.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace devshare::host {
namespace {

struct Answer {
  Request request;
  Fetched fetched;
};

// Null but between ask_ahead and forget_asked_ahead: a thread that never asks ahead has nothing to destroy.
constinit thread_local std::vector<Answer>* answers = nullptr;

std::optional<Request> request_for(const ExpectedImport& expected) noexcept {
  using By = ExpectedImport::By;
  Request request;
  request.op = expected.by == By::key ? Op::import_memory : Op::import_handle;
  if (expected.by == By::key) {
    const auto name = decode_key(static_cast<const char*>(expected.name), key_form(profile().product));
    if (!name) return std::nullopt;
    request.key = *name;
    return request;
  }
  request.kind = expected.by == By::v1 ? TokenKind::v1 : expected.by == By::v2 ? TokenKind::v2 : TokenKind::fabric;
  if (expected.by == By::fabric) {
    acl::aclrtMemFabricHandle bytes;
    std::memcpy(&bytes, expected.name, sizeof bytes);
    const auto token = decode_fabric(bytes);
    if (!token) return std::nullopt;
    request.key = token->name;
  } else {
    std::uint64_t number = 0;
    std::memcpy(&number, expected.name, sizeof number);
    request.key = decode_token(number);
  }
  return request;
}

bool same_question(const Request& a, const Request& b) noexcept {
  return a.op == b.op && a.kind == b.kind && a.key == b.key;
}

void ask_together(std::span<const Request> requests) {
  std::vector<std::optional<Fetched>> fetched(requests.size());
  if (ask_exporter_of_several(requests, fetched) == 0) return;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (fetched[i]) answers->push_back({requests[i], *std::move(fetched[i])});
  }
}

}  // namespace

void ask_ahead(std::span<const ExpectedImport> imports) noexcept {
  forget_asked_ahead();
  std::vector<Request> requests;
  for (const ExpectedImport& expected : imports) {
    if (const auto request = request_for(expected)) requests.push_back(*request);
  }
  answers = new std::vector<Answer>;
  for (auto begin = requests.begin(); begin != requests.end();) {
    const auto end = std::find_if(begin, requests.end(), [&](const Request& other) {
      return other.key.endpoint != begin->key.endpoint;
    });
    ask_together({begin, end});
    begin = end;
  }
}

void forget_asked_ahead() noexcept { delete std::exchange(answers, nullptr); }

std::optional<Fetched> take_answer(const Request& what) noexcept {
  if (answers == nullptr) return std::nullopt;
  const auto found = std::find_if(answers->begin(), answers->end(),
                                  [&](const Answer& answer) { return same_question(answer.request, what); });
  if (found == answers->end()) return std::nullopt;
  std::optional<Fetched> taken(std::move(found->fetched));
  answers->erase(found);
  return taken;
}

}  // namespace devshare::host
