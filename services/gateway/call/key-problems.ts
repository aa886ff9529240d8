import type { Problem } from '@plat/config'
import { type KeyPurpose, keyUriProblem } from '@plat/keys'

/** Refuses a key URI that is malformed, or whose place has no keys for the purpose. Opens nothing; an empty one is not checked. */
export function keyProblems(path: string, uri: string, purpose: KeyPurpose): Problem[] {
  const message = uri === '' ? null : keyUriProblem(uri, purpose)
  return message === null ? [] : [{ path, message, severity: 'error' }]
}
