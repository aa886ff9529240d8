import { parseSessionSpiffeId } from '@plat/core'

/** Returns the session's name as the gateway's ledger has it, from its SPIFFE ID; no members for another caller. */
export function nameIn(sub: string | undefined): { namespace?: string; agent?: string; session?: string } {
  const name = sub === undefined ? null : parseSessionSpiffeId(sub)
  return name === null ? {} : { namespace: name.namespace, agent: name.agent, session: name.session }
}
