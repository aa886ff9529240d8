import type { ModelEndpointEntry } from '@plat/resources/rendered'

/** How one provider is spoken to. */
interface Provider {
  /** The variants that are built, the default first; empty: it has none. */
  readonly modes: readonly string[]
  /** Endpoints of OpenAI's or Anthropic's API that it serves. */
  readonly methods: ReadonlySet<string>
  /** The header that carries a key, and what stands before the key. */
  readonly keyHeader: readonly [name: string, prefix: string]
}

const BEARER = ['authorization', 'Bearer '] as const
const OPENAI = new Set(['chat/completions', 'completions', 'responses', 'embeddings', 'models'])
const ANTHROPIC = new Set(['messages', 'messages/count_tokens', 'models'])

/** Every provider that is built (document 3, `provider` and `mode`). */
const PROVIDERS = {
  openai: { modes: [], methods: OPENAI, keyHeader: BEARER },
  anthropic: { modes: ['direct'], methods: ANTHROPIC, keyHeader: ['x-api-key', ''] },
  'azure-openai': { modes: ['v1', 'deployments'], methods: OPENAI, keyHeader: ['api-key', ''] },
} as const satisfies Record<string, Provider>

type ProviderName = keyof typeof PROVIDERS

/** Versions of APIs where a route names none (document 3, `apiVersion`). */
const API_VERSIONS: Readonly<Record<string, string>> = { anthropic: '2023-06-01', 'azure-openai': '2024-10-21' }

/** What of an endpoint depends on its provider. */
export interface Wire {
  readonly provider: ProviderName
  readonly methods: ReadonlySet<string>
  readonly keyHeader: readonly [name: string, prefix: string]
  /** Sent with every request, over what the caller sent. */
  readonly headers: Readonly<Record<string, string>>
  /** What a request goes without when neither caller nor route say. */
  readonly defaults: Readonly<Record<string, string>>
  /** The path names the model. */
  readonly perModel: boolean
  /** Path and query below the base URL. */
  pathOf(method: string, model: string | null): string
}

/** Paths of a base URL that say nothing: what follows depends on the mode. */
const AZURE_BASES: ReadonlySet<string> = new Set(['/', '/v1', '/openai', '/openai/v1'])

/** The base URL without a slash at its end. For Azure a host is enough: its modes have paths of their own. */
export function baseOf({ provider, mode, upstream }: ModelEndpointEntry): string {
  const base = upstream.replace(/\/+$/, '')
  if (provider !== 'azure-openai' || !AZURE_BASES.has(new URL(base).pathname)) return base
  return new URL(base).origin + (mode === 'deployments' ? '' : '/openai/v1')
}

/** Only for an entry without faults: of any other provider it throws. */
export function wireOf({ provider: name = 'openai', mode, apiVersion, auth }: ModelEndpointEntry): Wire {
  if (!isBuilt(name)) throw new Error(`the provider ${name} is not built`)
  const { methods, keyHeader } = PROVIDERS[name]
  const version = apiVersion || API_VERSIONS[name] || ''
  const plain = (method: string) => `/${method}`
  const inDeployment = (method: string, model: string | null) =>
    method.startsWith('models')
      ? `/openai/${method}?api-version=${version}`
      : `/openai/deployments/${encodeURIComponent(model ?? '')}/${method}?api-version=${version}`
  const isAnthropic = name === 'anthropic'
  const perModel = name === 'azure-openai' && mode === 'deployments'
  return {
    provider: name,
    methods,
    keyHeader: auth?.type === 'bearer' ? BEARER : keyHeader,
    headers: isAnthropic && apiVersion ? { 'anthropic-version': apiVersion } : {},
    defaults: isAnthropic ? { 'anthropic-version': version } : {},
    perModel,
    pathOf: perModel ? inDeployment : plain,
  }
}

/** What is wrong with an endpoint beside its schema, by the name of the key. */
export function endpointFaults(
  entry: Omit<ModelEndpointEntry, 'upstream'>,
): readonly (readonly [key: string, message: string])[] {
  const { provider: name = 'openai', mode = '', apiVersion = '', auth } = entry
  if (!isBuilt(name)) return [['provider', NOT_BUILT]]
  const modes: readonly string[] = PROVIDERS[name].modes
  const faults: [string, string][] = []
  if (mode !== '' && !modes.includes(mode))
    faults.push(['mode', BUILT_LATER.has(`${name}/${mode}`) ? NOT_BUILT : `is no variant of the provider ${name}`])
  if (apiVersion !== '' && !(name in API_VERSIONS))
    faults.push(['apiVersion', `has no meaning for the provider ${name}`])
  for (const key of ['region', 'project'] as const) {
    if ((entry[key] ?? '') !== '') faults.push([key, `has no meaning for the provider ${name}`])
  }
  return [...faults, ...authFaults(auth ?? {}, entry.apiKeyFile ?? '')]
}

export const NOT_BUILT = 'not built yet in this version'
const BUILT_LATER: ReadonlySet<string> = new Set(['anthropic/vertex', 'anthropic/bedrock'])

function authFaults(auth: NonNullable<ModelEndpointEntry['auth']>, apiKeyFile: string): [string, string][] {
  const { type = '', tokenFile = '' } = auth
  switch (type) {
    case '':
    case 'api-key':
    case 'bearer':
      if (type === 'api-key' && apiKeyFile === '') return [['apiKeyFile', 'is required with auth.type api-key']]
      if (type === 'bearer' && tokenFile === '' && apiKeyFile === '')
        return [['auth.tokenFile', 'this or apiKeyFile is required with auth.type bearer']]
      return []
    case 'none':
      return apiKeyFile === '' ? [] : [['apiKeyFile', 'is presented to nobody with auth.type none']]
    default:
      return [['auth.type', NOT_BUILT]]
  }
}

/** The file whose content is presented to an endpoint; null: it takes none. */
export function credentialFile({ auth, apiKeyFile }: ModelEndpointEntry): string | null {
  if (auth?.type === 'none') return null
  return (auth?.type === 'bearer' ? auth.tokenFile : '') || apiKeyFile || null
}

function isBuilt(name: string): name is ProviderName {
  return Object.hasOwn(PROVIDERS, name)
}
