import type { Steps } from '@plat/core'

/** Work without steps, with its result. */
// biome-ignore lint/correctness/useYield: without steps
export function* stepless<T>(result: T): Steps<T> {
  return result
}
