import { systemClock } from '@plat/core'
import type { AdminOptions } from '../admin/index.ts'

const NO_STEP_UP = { acr: [], amr: [], maxAgeSeconds: 0 }

/** `adminAuth` with its defaults: only the static token. */
export const tokenMode: Pick<AdminOptions, 'config' | 'people' | 'recordsFirst' | 'clock' | 'refused' | 'browsers'> = {
  config: {
    mode: 'token',
    roles: {},
    namespaceRoles: {},
    people: {},
    oidc: { issuer: '', audience: '', clientID: '', scopes: [], resource: '' },
    stepUp: {
      approve: NO_STEP_UP,
      revoke: NO_STEP_UP,
      accept: NO_STEP_UP,
      view: NO_STEP_UP,
      control: NO_STEP_UP,
    },
  },
  people: null,
  recordsFirst: false,
  clock: systemClock,
  refused: () => {},
  browsers: null,
}

/** The same with people, whose token is their name, and their roles by namespace. */
export function inNamespaces(namespaceRoles: AdminOptions['config']['namespaceRoles']): typeof tokenMode {
  return {
    ...tokenMode,
    config: { ...tokenMode.config, mode: 'both', namespaceRoles },
    people: { identify: (token) => ({ user: token, groups: [] }) },
  }
}
