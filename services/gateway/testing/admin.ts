import { systemClock } from '@plat/core'
import type { AdminOptions } from '../admin/index.ts'

/** `adminAuth` with its defaults: only the static token. */
export const tokenMode: Pick<AdminOptions, 'config' | 'people' | 'recordsFirst' | 'clock' | 'refused'> = {
  config: {
    mode: 'token',
    roles: {},
    namespaceRoles: {},
    people: {},
    oidc: { issuer: '', audience: '', clientID: '', scopes: [], resource: '' },
  },
  people: null,
  recordsFirst: false,
  clock: systemClock,
  refused: () => {},
}

/** The same with people, whose token is their name, and their roles by namespace. */
export function inNamespaces(namespaceRoles: AdminOptions['config']['namespaceRoles']): typeof tokenMode {
  return {
    ...tokenMode,
    config: { ...tokenMode.config, mode: 'both', namespaceRoles },
    people: { identify: (token) => ({ user: token, groups: [] }) },
  }
}
