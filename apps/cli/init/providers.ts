import type { Draft } from '../shared/draft.ts'

/** A provider of models that `plat init` can write. */
interface Choice {
  readonly endpoint: string
  readonly adapter?: string
  /** Variable with the key; absent: none is needed. */
  readonly variable?: string
}

const CHOICES: Readonly<Record<string, Choice>> = {
  openai: { endpoint: 'https://api.openai.com/v1', variable: 'OPENAI_API_KEY' },
  anthropic: { endpoint: 'https://api.anthropic.com/v1', adapter: 'anthropic', variable: 'ANTHROPIC_API_KEY' },
  gemini: {
    endpoint: 'https://generativelanguage.googleapis.com/v1beta',
    adapter: 'gemini',
    variable: 'GEMINI_API_KEY',
  },
  ollama: { endpoint: 'http://127.0.0.1:11434/v1' },
}

/** No model: the agent only uses tools. */
export const NO_PROVIDER = 'none'
export const PROVIDER_CHOICES = [...Object.keys(CHOICES), NO_PROVIDER]

/** The first provider whose key is set. */
export function usualProvider(env: NodeJS.ProcessEnv): string {
  const found = Object.entries(CHOICES).find(([, { variable }]) => variable !== undefined && env[variable])
  return found?.[0] ?? NO_PROVIDER
}

/** `spec.model` of an Agent; the key goes into `.plat/secrets`. Undefined without a provider. */
export function modelOf(provider: string, draft: Draft, env: NodeJS.ProcessEnv): object | undefined {
  const choice = CHOICES[provider]
  if (choice === undefined) return undefined
  const { endpoint, adapter, variable } = choice
  const secret = variable === undefined ? null : { name: provider, key: 'api-key' }
  return {
    endpoint,
    ...(adapter !== undefined && { adapter }),
    ...(secret !== null && {
      apiKeySecretRef: draft.secret({ ...secret, value: env[variable ?? ''] || null, source: `key of ${provider}` }),
    }),
  }
}
