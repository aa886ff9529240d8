import type { FlagTable, SettingsOf } from '@plat/config'

const group = 'Warm-pool bootstrap'

/** The flags of `POST /v1/bootstrap` (docs/spec/broker-api.md, "Broker flags that shape the API"). */
export const bootstrapFlags = {
  'bootstrap-listen': {
    type: 'string',
    default: 'off',
    group,
    help: 'Address on which warm-pool pods learn which session they serve; off for none. Needs a cluster: see -kubernetes-api.',
  },
  'bootstrap-audience': {
    type: 'string',
    default: 'plat-bootstrap',
    group,
    help: 'Audience of the projected service-account tokens that pods present.',
  },
  'bootstrap-max-concurrent': {
    type: 'int',
    default: 256,
    min: 1,
    max: 10_000,
    group,
    help: 'Requests of pods, long-polls among them, at the same time; more get 503.',
  },
  'bootstrap-gateway-url': {
    type: 'string',
    default: 'http://plat-gateway.plat-system.svc:8080',
    url: true,
    group,
    help: 'URL of the gateway as pods reach it: PLAT_GATEWAY_URL.',
  },
} as const satisfies FlagTable

export type BootstrapSettings = SettingsOf<typeof bootstrapFlags>

/** Returns the problems of the settings, one line each, naming the flag. */
export function bootstrapSettingProblems(settings: BootstrapSettings): readonly string[] {
  const problems: string[] = []
  if (settings.bootstrapListen === '') problems.push('-bootstrap-listen: write an address or off')
  if (settings.bootstrapAudience === '') problems.push('-bootstrap-audience: must not be empty')
  const url = URL.parse(settings.bootstrapGatewayUrl)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '') {
    problems.push(
      `-bootstrap-gateway-url ${settings.bootstrapGatewayUrl}: must be an http or https URL without query, fragment and user`,
    )
  }
  return problems
}
