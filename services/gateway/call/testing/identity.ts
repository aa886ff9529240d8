import type { Identity } from '../index.ts'

/** Somebody of agent `default/a` without scopes, for tests that say only what matters to them. */
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
