import { type Denial, deny, type Identity, isDenial, modelScopeOf, type RequestContext } from '../../../call/index.ts'
import { useJsonBytes } from '../../wire/message.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { type ModelBody, readModelBody } from '../request.ts'
import { uploadBody } from './body.ts'
import { readMultipart } from './read.ts'
import type { UploadLimits } from './spool.ts'

/** A request whose body is not read yet. */
export interface UnreadRequest {
  readonly arrival: RequestContext
  readonly identity: Identity
  readonly limits: UploadLimits
}

/** Reads the body of a request, JSON or a form, and returns the result of `use` for it, or a denial. */
export function useModelBody<T>(
  { arrival, identity, limits }: UnreadRequest,
  dialect: Dialect,
  use: (body: ModelBody) => T | Denial,
): Denial | Promise<T | Denial> {
  if (dialect.multipart !== true) {
    return useJsonBytes(arrival, limits, (bytes) => {
      const body = readModelBody(bytes, dialect)
      return isDenial(body) ? body : use(body)
    })
  }
  return readMultipart(arrival, identity, limits).then((form) => {
    const body = isDenial(form) ? form : uploadBody(form, dialect)
    return isDenial(body) ? body : use(body)
  })
}

/** Prefix of the scopes of chats. */
const CHATS = modelScopeOf('model.generate')

/** Denies a caller that has no scope for such a call before its body is read; `route` is null at the address of all routes. */
export function scopeFault({ scopes }: Identity, dialect: Dialect, route: string | null): Denial | null {
  const prefix = modelScopeOf(dialect.operation)
  if (prefix === CHATS) return null
  const isGranted = route === null ? [...scopes].some((one) => one.startsWith(prefix)) : scopes.has(prefix + route)
  const scope = prefix + (route ?? '<route>')
  return isGranted ? null : deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
}
