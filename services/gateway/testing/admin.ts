import type { AdminOptions } from '../admin/index.ts'

/** `adminAuth` as it stands when nobody configures it: the static token alone. */
export const tokenMode: Pick<AdminOptions, 'config' | 'people'> = {
  config: { mode: 'token', roles: {}, namespaceRoles: {}, people: {}, oidc: { issuer: '', clientID: '', scopes: [] } },
  people: null,
}

/** The same with people, whose token is their name, and their roles by namespace. */
export function inNamespaces(namespaceRoles: AdminOptions['config']['namespaceRoles']): typeof tokenMode {
  return {
    config: { ...tokenMode.config, mode: 'both', namespaceRoles },
    people: { identify: (token) => ({ user: token, groups: [] }) },
  }
}
