import type { AdminOptions } from '../admin/index.ts'

/** `adminAuth` as it stands when nobody configures it: the static token alone. */
export const tokenMode: Pick<AdminOptions, 'config' | 'people'> = {
  config: { mode: 'token', roles: {}, namespaceRoles: {}, oidc: { issuer: '', clientID: '', scopes: [] } },
  people: null,
}
