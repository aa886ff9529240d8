import { type PoolObserver, watchedPool } from '@plat/core'
import type { OnceSets } from '@plat/state'
import type { ProofContext, ProofFailure, Unreachable } from '../check.ts'
import { failed, unreachable } from './verdict.ts'

/** Records which session a credential without a nonce served first: it serves no other one while it is valid. */
export interface FirstUse {
  /**
   * Null when the credential is new or was used for this very session (a mint may be repeated). `until`: the end of the
   * credential in milliseconds since the epoch.
   */
  claim(credential: string, context: ProofContext, until: number): Promise<ProofFailure | Unreachable | null>
}

export function createFirstUse(sets: OnceSets, observer?: PoolObserver): FirstUse {
  const sessions = sets.set('credential', watchedPool({ name: 'used_credentials', observer }))
  return {
    async claim(credential, { namespace, agent, session }, until) {
      // None of the three holds a slash: they are segments of a SPIFFE ID.
      const name = `${namespace}/${agent}/${session}`
      const answer = await sessions.insert(credential, name, until, `${namespace}/${agent}`)
      if (answer === 'full') return unreachable('too many credentials are remembered')
      if (answer === 'inserted' || (await sessions.get(credential)) === name) return null
      return failed('the credential has served another session')
    },
  }
}
