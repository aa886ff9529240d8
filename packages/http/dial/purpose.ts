/**
 * Purpose of a connection, which determines the address policy. The first group is configured by the operator of the gateway; the second, from `web`
 * on, is chosen by agents and by content they read. `push` is a notification endpoint of another agent, `card` an agent card.
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
 * `public`: only addresses of the public internet. `configured`: anything but the metadata services of clouds. `metadata`: those as well, to read
 * the credentials of this machine.
 */
export type AddressPolicy = 'configured' | 'public' | 'metadata'

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
