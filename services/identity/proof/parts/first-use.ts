import type { OnceSets } from '@plat/state'
import type { ProofContext, ProofFailure, Unreachable } from '../check.ts'
import { failed, unreachable } from './verdict.ts'

/** Credentials that are remembered at most, about 300 bytes each. */
const MAX_CREDENTIALS = 100_000

/** Remembers which session a credential without a nonce served first: it serves no other one while it is valid. */
export interface FirstUse {
  /**
   * Null when the credential is new or was used for this very session (a mint may be repeated). `until`: the end of the
   * credential in milliseconds since the epoch.
   */
  claim(credential: string, context: ProofContext, until: number): Promise<ProofFailure | Unreachable | null>
}

export function createFirstUse(sets: OnceSets): FirstUse {
  const sessions = sets.set('credential', MAX_CREDENTIALS)
  return {
    async claim(credential, { namespace, agent, session }, until) {
      // None of the three holds a slash: they are segments of a SPIFFE ID.
      const name = `${namespace}/${agent}/${session}`
      const answer = await sessions.insert(credential, name, until)
      if (answer === 'full') return unreachable('too many credentials are remembered')
      if (answer === 'inserted' || (await sessions.get(credential)) === name) return null
      return failed('the credential has served another session')
    },
  }
}
