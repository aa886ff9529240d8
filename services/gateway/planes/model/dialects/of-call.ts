import type { Call } from '../../../call/index.ts'
import { ModelBody } from '../request.ts'
import { dialectOfBatch } from './batches.ts'
import { chat } from './chat.ts'
import type { Dialect } from './dialect.ts'

/** Returns the dialect of a call; OpenAI's for requests without a body. */
export function dialectOfCall({ body, operation, method }: Pick<Call, 'body' | 'operation' | 'method'>): Dialect {
  if (body instanceof ModelBody) return body.dialect
  return operation === 'model.batch' ? dialectOfBatch(method) : chat
}
