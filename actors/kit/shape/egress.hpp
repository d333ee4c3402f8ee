// What a request and its answer weigh on the way between regions: what the plan and the routers price by the policy's egress weight.
#pragma once

namespace signalbox::kit {

/// What a token is on the way: text in the prompt, an event of its own in a streamed answer.
inline constexpr double bytes_of_prompt_token = 4, bytes_of_answer_token = 250;

constexpr double bytes_on_the_way(double prompt_tokens, double answer_tokens) {
  return prompt_tokens * bytes_of_prompt_token + answer_tokens * bytes_of_answer_token;
}
/// The policy prices megabytes.
inline constexpr double megabyte = 1e6;

}  // namespace signalbox::kit
