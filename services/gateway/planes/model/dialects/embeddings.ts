import { isObject, member } from '@plat/core'
import { commonFault, isSet, wrong } from './checks.ts'
import { type Dialect, inputOnly } from './dialect.ts'
import { openai, reportOf } from './openai.ts'
import { OPENAI_USAGE, usageFault } from './shapes.ts'

/** `embeddings` of OpenAI's API: nothing is generated, and nothing streams. */
export const embeddings: Dialect = {
  ...openai,
  method: 'embeddings',
  operation: 'model.embed',
  tokenizer: 'openai',
  asksUsage: false,
  fault: (value) => (isSet(value.stream) ? wrong('stream', 'is not a member of this request') : commonFault(value)),
  request: (bytes, { model }) => inputOnly(model, bytes),
  maxTokensMember: () => null,
  answerFault({ data, usage }) {
    if (!Array.isArray(data) || !data.every(isObject)) return 'embeddings without valid data'
    return usageFault(usage, OPENAI_USAGE)
  },
  report({ value }) {
    const usage = member(value, 'usage')
    return isObject(usage) ? reportOf({ completion_tokens: 0, ...usage }) : null
  },
}
