import type { Identity } from '../index.ts'

/** A session of agent `default/a` without scopes. Tests override only the fields that they need. */
export const testIdentity: Identity = {
  tenant: '',
  trustDomain: '',
  namespace: 'default',
  agent: 'a',
  session: 's',
  user: null,
  groups: [],
  verified: null,
  tier: 't',
  scopes: new Set(),
  jti: 'j',
  ancestors: [],
  delegators: [],
  forkedFrom: [],
  chain: [],
  expiresAt: 0,
  jkt: null,
  issuer: '',
  forkRoot: null,
  inheritedTaints: [],
}
