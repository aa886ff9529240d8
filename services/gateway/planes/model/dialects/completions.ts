import { type JsonObject, member } from '@plat/core'
import { commonFault, isCount, isSet, limitFault, objectFault, wrong } from './checks.ts'
import type { Dialect } from './dialect.ts'
import { openai } from './openai.ts'

/** Most choices of each prompt, and most candidates of which they are the best, as OpenAI limits it. */
const MAX_CHOICES = 128

/** `completions` of OpenAI's API: text that goes on from a prompt, or from each of several. */
export const completions: Dialect = {
  ...openai,
  method: 'completions',
  operation: 'model.generate',
  fault(value) {
    for (const name of ['n', 'best_of']) {
      if (isSet(value[name]) && !isCount(value[name], MAX_CHOICES))
        return wrong(name, `must be a whole number from 1 to ${MAX_CHOICES}`)
    }
    return commonFault(value) ?? limitFault(value, 'max_tokens') ?? objectFault(value, 'stream_options')
  },
  request(bytes, value) {
    const { model, max_tokens: maxTokens } = value
    return {
      model: typeof model === 'string' ? model : null,
      stream: value.stream === true,
      usageAsked: member(value.stream_options, 'include_usage') === true,
      maxTokens: typeof maxTokens === 'number' ? maxTokens : null,
      maxTokensMember: isSet(maxTokens) ? 'max_tokens' : null,
      choices: promptsOf(value) * Math.max(countOf(value.n), countOf(value.best_of)),
      inputTokensAtMost: bytes.byteLength,
      bounded: true,
    }
  },
  maxTokensMember: () => 'max_tokens',
}

/** A list of texts, or of lists of tokens, is one prompt each; a list of tokens is one. */
function promptsOf({ prompt }: JsonObject): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? Math.max(1, prompt.length) : 1
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 1
}
