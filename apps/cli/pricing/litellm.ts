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

/** Length of the input from which the second price of a model applies, by the suffix of its members. */
const LONG_INPUTS = { above_128k_tokens: 128_000, above_200k_tokens: 200_000 } as const

const MEMBERS = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cachedRead: 'cache_read_input_token_cost',
  cachedWrite: 'cache_creation_input_token_cost',
} as const

/** Converts LiteLLM's `model_prices_and_context_window.json`: models that are priced by tokens, of providers that plat has. */
export function fromLiteLLM(list: Readonly<Record<string, unknown>>): Record<string, object> {
  const models: Record<string, object> = {}
  for (const [name, entry] of Object.entries(list)) {
    if (!isObject(entry)) continue
    const provider = typeof entry.litellm_provider === 'string' ? PROVIDERS[entry.litellm_provider] : undefined
    const base = ratesOf(entry, '')
    const model = name.slice(name.lastIndexOf('/') + 1)
    if (provider === undefined || base === null || model === '' || /[*#]/.test(model)) continue
    const tiers = Object.entries(LONG_INPUTS).flatMap(([suffix, aboveInputTokens]) => {
      const rates = ratesOf(entry, `_${suffix}`)
      return rates === null ? [] : [{ aboveInputTokens, ...rates }]
    })
    models[`${provider}/${model}`] = { ...base, ...(tiers.length > 0 && { tiers }) }
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
