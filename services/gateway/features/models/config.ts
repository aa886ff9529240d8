import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** The name of a static route; it stands in `/llm/<route>/v1` and in the scope `models:<route>`. */
const ROUTE_NAME = '^(?!plat-)[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'

const unbuilt = { built: false } as const
const names = (description: string) => Type.Array(Type.String({ minLength: 1 }), { default: [], description })

const route = Type.Object({
  provider: Type.String({ default: 'openai', ...unbuilt, description: 'Wire format of the upstream.' }),
  upstream: Type.String({ minLength: 1, format: 'http-url', description: 'Base URL including `/v1`.' }),
  model: Type.String({ default: '', description: 'Forced into each request that names no alias.' }),
  aliases: Type.Record(Type.String(), Type.String({ minLength: 1 }), {
    default: {},
    description: 'Model names that agents send, mapped to those of the provider.',
  }),
  namespaces: names('Namespaces that may use the route; default any.'),
  agents: names('Agents that may use the route, as `<ns>/<agent>` or `<agent>`; default any.'),
  apiKeyFile: Type.String({
    default: '',
    file: 'warning',
    description: 'Key presented as bearer credential, re-read each reload; the session token is always stripped.',
  }),
  reasoning: Type.Optional(Type.Boolean({ description: 'Takes `max_completion_tokens`; default detected.' })),
  maxTokensPerRequest: Type.Integer({ default: 0, minimum: 0, description: 'Clamp for `max_tokens`; 0 unlimited.' }),
  tokensPerMinute: Type.Integer({ default: 0, minimum: 0, ...unbuilt, description: 'Per session; 0 unlimited.' }),
  requestsPerMinute: Type.Integer({ default: 0, minimum: 0, ...unbuilt, description: '0 unlimited.' }),
  dlpProfile: Type.String({ default: 'none', ...unbuilt, description: '`none` disables.' }),
  jurisdiction: Type.String({ default: '', ...unbuilt, description: 'Where the endpoint runs.' }),
  preferJurisdiction: Type.String({ default: '', ...unbuilt, description: 'Endpoints there are tried first.' }),
  providerTools: Type.Array(Type.String(), { default: [], ...unbuilt, description: 'Allowed provider-hosted tools.' }),
  fallbacks: Type.Array(Type.Unknown(), { default: [], ...unbuilt, description: 'Tried in order.' }),
  mode: Type.String({ default: '', ...unbuilt, description: 'Variant of the provider.' }),
  region: Type.String({ default: '', ...unbuilt, description: 'Provider region.' }),
  project: Type.String({ default: '', ...unbuilt, description: 'Cloud project.' }),
  apiVersion: Type.String({ default: '', ...unbuilt, description: 'Version of the provider API.' }),
  auth: Type.Record(Type.String(), Type.Unknown(), {
    default: {},
    ...unbuilt,
    description: 'Upstream authentication.',
  }),
})

/** Model routes (document 3). */
export const modelsBlock = {
  path: '',
  feature: 'models',
  built: true,
  schema: Type.Object({
    modelsFile: Type.String({
      default: '',
      file: 'warning',
      description: '`{models: {route: …}}`; a missing file means no file routes; overrides `models`.',
    }),
    models: Type.Record(Type.String({ pattern: ROUTE_NAME }), route, { default: {}, description: 'Static routes.' }),
  }),
} satisfies ConfigBlock
