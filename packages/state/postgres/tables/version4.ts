import { countFunction } from './count.ts'

/** The fourth version: counting locks and writes its counters with one statement each. Gateways of version 3 continue to work beside it. */
export function version4(s: string): string {
  return countFunction(s)
}
