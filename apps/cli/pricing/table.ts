/**
 * List prices of models in USD per 1,000,000 tokens, from the public price pages of their providers. Check them before a budget depends on
 * them: providers change prices, and contracts have others. @table
 */

/** When the prices were collected. */
export const PRICES_DATE = '2025-12-01'

/** Prices of one model: input, output, cached input, and cache writes where they are charged. */
export type PriceRow = readonly [
  model: string,
  input: string,
  output: string,
  cachedRead?: string,
  cachedWrite?: string,
]

export interface ProviderPrices {
  /** Page of the provider. */
  readonly source: string
  readonly models: readonly PriceRow[]
  /** Models with other prices above a length of the input. */
  readonly tiers?: Readonly<Record<string, { readonly above: number; readonly input: string; readonly output: string }>>
}

const OPENAI: readonly PriceRow[] = [
  ['gpt-5', '1.25', '10', '0.125'],
  ['gpt-5-20*', '1.25', '10', '0.125'],
  ['gpt-5-mini*', '0.25', '2', '0.025'],
  ['gpt-5-nano*', '0.05', '0.40', '0.005'],
  ['gpt-5-codex*', '1.25', '10', '0.125'],
  ['gpt-5.1*', '1.25', '10', '0.125'],
  ['gpt-4.1', '2', '8', '0.50'],
  ['gpt-4.1-20*', '2', '8', '0.50'],
  ['gpt-4.1-mini*', '0.40', '1.60', '0.10'],
  ['gpt-4.1-nano*', '0.10', '0.40', '0.025'],
  ['gpt-4o', '2.50', '10', '1.25'],
  ['gpt-4o-20*', '2.50', '10', '1.25'],
  ['gpt-4o-mini', '0.15', '0.60', '0.075'],
  ['gpt-4o-mini-20*', '0.15', '0.60', '0.075'],
  ['o3', '2', '8', '0.50'],
  ['o3-20*', '2', '8', '0.50'],
  ['o3-mini*', '1.10', '4.40', '0.55'],
  ['o4-mini*', '1.10', '4.40', '0.275'],
  ['text-embedding-3-small', '0.02', '0'],
  ['text-embedding-3-large', '0.13', '0'],
]

const CLAUDE: readonly PriceRow[] = [
  ['claude-opus-4-5*', '5', '25', '0.50', '6.25'],
  ['claude-opus-4-1*', '15', '75', '1.50', '18.75'],
  ['claude-opus-4-20*', '15', '75', '1.50', '18.75'],
  ['claude-sonnet-4-5*', '3', '15', '0.30', '3.75'],
  ['claude-sonnet-4-20*', '3', '15', '0.30', '3.75'],
  ['claude-3-7-sonnet*', '3', '15', '0.30', '3.75'],
  ['claude-haiku-4-5*', '1', '5', '0.10', '1.25'],
  ['claude-3-5-haiku*', '0.80', '4', '0.08', '1'],
]

const GEMINI: readonly PriceRow[] = [
  ['gemini-3-pro*', '2', '12', '0.20'],
  ['gemini-2.5-pro', '1.25', '10', '0.125'],
  ['gemini-2.5-flash', '0.30', '2.50', '0.03'],
  ['gemini-2.5-flash-lite', '0.10', '0.40', '0.01'],
  ['gemini-2.0-flash', '0.10', '0.40', '0.025'],
]

const GEMINI_TIERS = {
  'gemini-3-pro*': { above: 200_000, input: '4', output: '18' },
  'gemini-2.5-pro': { above: 200_000, input: '2.50', output: '15' },
}

/** By the name of the provider in routes. `ctxengine` has no public prices. */
export const PRICES: Readonly<Record<string, ProviderPrices>> = {
  openai: { source: 'https://openai.com/api/pricing/', models: OPENAI },
  'azure-openai': {
    source: 'https://azure.microsoft.com/pricing/details/cognitive-services/openai-service/',
    models: OPENAI,
  },
  anthropic: { source: 'https://www.anthropic.com/pricing', models: CLAUDE },
  gemini: { source: 'https://ai.google.dev/gemini-api/docs/pricing', models: GEMINI, tiers: GEMINI_TIERS },
  vertex: {
    source: 'https://cloud.google.com/vertex-ai/generative-ai/pricing',
    models: GEMINI.map(([model, ...prices]) => [model, ...prices]),
    tiers: GEMINI_TIERS,
  },
  bedrock: {
    source: 'https://aws.amazon.com/bedrock/pricing/',
    models: [
      ['*amazon.nova-micro-v1*', '0.035', '0.14', '0.00875'],
      ['*amazon.nova-lite-v1*', '0.06', '0.24', '0.015'],
      ['*amazon.nova-pro-v1*', '0.80', '3.20', '0.20'],
      ['*anthropic.claude-sonnet-4-5*', '3', '15', '0.30', '3.75'],
      ['*anthropic.claude-haiku-4-5*', '1', '5', '0.10', '1.25'],
      ['*anthropic.claude-opus-4-5*', '5', '25', '0.50', '6.25'],
    ],
  },
  'oci-genai': {
    source: 'https://www.oracle.com/cloud/price-list/',
    models: [
      ['xai.grok-4', '3', '15', '0.75'],
      ['xai.grok-3', '3', '15', '0.75'],
      ['xai.grok-3-mini', '0.30', '0.50', '0.075'],
    ],
  },
}
