import type { JsonObject } from '@plat/core'
import type { Denial } from '../../../call/index.ts'
import { isSet, wrong } from './checks.ts'
import { type Dialect, inputOnly } from './dialect.ts'
import { partsFault } from './media.ts'
import { openai } from './openai.ts'
import type { ShapeFault } from './shapes.ts'

/** Purposes in OpenAI's API of files that requests of an agent may name. */
const PURPOSES: ReadonlySet<unknown> = new Set(['user_data', 'vision', 'assistants', 'batch'])

/** `files`, of OpenAI's and Anthropic's API: a form with one file. */
export const files: Dialect = {
  ...openai,
  method: 'files',
  operation: 'model.file',
  multipart: true,
  asksUsage: false,
  headers: ['anthropic-version', 'anthropic-beta'],
  generated: ['filename', 'error'],
  fault: (value) => purposeFault(value) ?? partsFault(value, FILE_PART),
  request: (bytes) => inputOnly(null, bytes),
  maxTokensMember: () => null,
  answerFault: ({ id }: JsonObject): ShapeFault =>
    typeof id === 'string' && id !== '' ? null : 'a file without an id',
  report: () => null,
  hides: () => false,
}

const FILE_PART: ReadonlySet<unknown> = new Set(['file'])

function purposeFault({ purpose, ...rest }: JsonObject): Denial | null {
  const other = Object.keys(rest).find((name) => name.startsWith('purpose'))
  if (other !== undefined) return wrong(other, 'must be written without brackets')
  if (!isSet(purpose) || PURPOSES.has(purpose)) return null
  return wrong('purpose', `must be one of ${[...PURPOSES].join(', ')}: fine-tuning is not built`)
}
