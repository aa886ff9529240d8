import { isObject } from '@plat/core'
import { perMillion } from '../import/litellm/endpoint.ts'

/** Providers of LiteLLM's price list that plat has. */
const PROVIDERS: Readonly<Record<string, string>> = {
  openai: 'openai',
  'text-completion-openai': 'openai',
  anthropic: 'anthropic',
  azure: 'azure-openai',
  bedrock: 'bedrock',
  bedrock_converse: 'bedrock',
  gemini: 'gemini',
  'vertex_ai-language-models': 'vertex',
  oci: 'oci-genai',
}

/** A price of a model, and the length of the input above which it applies. */
const LONG_INPUT = /^input_cost_per_token_above_(\d{1,4})k_tokens$/

const MEMBERS = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cachedRead: 'cache_read_input_token_cost',
  cachedWrite: 'cache_creation_input_token_cost',
} as const

/**
 * Converts LiteLLM's `model_prices_and_context_window.json`: models that are priced by tokens, of providers that plat has. Names with a region
 * (`azure/eu/<model>`) are left out: a model of a route has no region in its name, and one of several prices would be arbitrary.
 */
export function fromLiteLLM(list: Readonly<Record<string, unknown>>): Record<string, object> {
  const models: Record<string, object> = {}
  for (const [name, entry] of Object.entries(list)) {
    if (!isObject(entry)) continue
    const provider = typeof entry.litellm_provider === 'string' ? PROVIDERS[entry.litellm_provider] : undefined
    const base = ratesOf(entry, '')
    const parts = name.split('/')
    const model = parts.at(-1) ?? ''
    const isRegional = parts.length > 2
    if (provider === undefined || base === null || isRegional || model === '' || /[*#]/.test(model)) continue
    const tiers = Object.keys(entry).flatMap((member) => {
      const [, thousands] = LONG_INPUT.exec(member) ?? []
      const rates = thousands === undefined ? null : ratesOf(entry, `_above_${thousands}k_tokens`)
      return rates === null ? [] : [{ aboveInputTokens: Number(thousands) * 1000, ...rates }]
    })
    const { max_input_tokens: context } = entry
    const hasContext = typeof context === 'number' && Number.isSafeInteger(context) && context > 0
    models[`${provider}/${model}`] = {
      ...base,
      ...(hasContext && { contextTokens: context }),
      ...(tiers.length > 0 && { tiers }),
    }
  }
  return models
}

/** Null: the model is not priced by tokens. */
function ratesOf(entry: Readonly<Record<string, unknown>>, suffix: string): Record<string, string> | null {
  const rates = Object.entries(MEMBERS).flatMap(([name, member]) => {
    const price = entry[member + suffix]
    return typeof price === 'number' && price >= 0 && price < 1 ? [[name, perMillion(price)]] : []
  })
  const all: Record<string, string> = Object.fromEntries(rates)
  return all.input === undefined || all.output === undefined ? null : all
}
