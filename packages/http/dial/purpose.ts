/**
 * What a connection is for. The purpose carries the address policy: the first group is named in a configuration by the
 * operator of the gateway; the second, from `web` on, by agents and by what they read. `push` is where another agent wants
 * to be told, `card` where one describes itself.
 */
export type Purpose =
  | 'mcp'
  | 'model'
  | 'a2a'
  | 'jwks'
  | 'notify'
  | 'otlp'
  | 'guard'
  | 'policy'
  | 'sink'
  | 'cloud'
  | 'search'
  | 'metadata'
  | 'kubernetes'
  | 'sandbox'
  | 'web'
  | 'egress'
  | 'push'
  | 'card'

/**
 * `public`: only addresses of the public internet. `configured`: anything but the metadata services of clouds. `metadata`: those as well,
 * for whoever asks them for the credentials of this very machine.
 */
export type AddressPolicy = 'configured' | 'public' | 'metadata'

/** The address policy of each purpose. */
export const addressPolicies: Readonly<Record<Purpose, AddressPolicy>> = {
  mcp: 'configured',
  model: 'configured',
  a2a: 'configured',
  jwks: 'configured',
  notify: 'configured',
  otlp: 'configured',
  guard: 'configured',
  policy: 'configured',
  sink: 'configured',
  cloud: 'configured',
  search: 'configured',
  metadata: 'metadata',
  sandbox: 'configured',
  kubernetes: 'configured',
  web: 'public',
  egress: 'public',
  push: 'public',
  card: 'public',
}
