import { defineBlock, key, type Problem, type RuleOf, type Unfinished, uniqueNames } from '@plat/config'
import { placeContradictions } from '@plat/resources/regions'
import Type, { type Static } from 'typebox'
import { appliesGuardrail, regionIn } from './types/bedrock-url.ts'

const guard = Type.Object({
  name: key.needed('Unique name.'),
  type: Type.Enum(['openai-moderation', 'llama-prompt-guard', 'lakera', 'bedrock-guardrail', 'http-json'], {
    description: 'Protocol of the classifier.',
  }),
  url: Type.String({ minLength: 1, format: 'http-url', description: 'Its URL; checked for residency.' }),
  model: key.text('Model to use; for `lakera` the project.'),
  apiKeyFile: key.file('Its key.'),
  on: Type.Array(Type.Enum(['toolResult', 'toolArgs', 'llmPrompt']), {
    default: ['toolResult'],
    description: 'Texts to classify.',
  }),
  namespaces: key.texts('Globs; default all.'),
  servers: key.texts('Globs; default all; may name `llm/<route>`.'),
  tools: key.texts('Globs; default all.'),
  threshold: Type.Number({
    default: 0.5,
    exclusiveMinimum: 0,
    maximum: 1,
    description: 'Minimum score of bad text.',
  }),
  label: key.text('Taint label of bad text.', 'prompt-injection-suspected'),
  action: key.choice(['taint', 'block'], 'taint', 'Effect of bad text.'),
  timeoutMs: key.millis('Time for one response.', 300),
  failOpen: key.flag('Proceed without a response, audited as `guard_unavailable`.', true),
  maxBytes: key.whole('Bytes of one window; longer text is read in up to 32.', 16_384, 1),
  scorePath: key.text('Path of the score in the response.', 'score'),
  category: key.text('Relevant category.'),
  positiveIndex: key.whole('Index of the bad class.', 1, 0),
  region: key.text('Cloud region.'),
  jurisdiction: key.jurisdiction(
    'Where it runs; checked against the SovereigntyPolicy; default as a cloud region says.',
  ),
})

/** One guard of gateway.json with defaults. */
export type GuardConfig = Readonly<Static<typeof guard>>
/** Kinds of texts that a guard can read. */
export type GuardTarget = GuardConfig['on'][number]

const schema = Type.Object({
  guards: Type.Array(guard, { default: [], description: 'Injection classifiers.' }),
})

/** Injection classifiers (docs/spec/gateway.md). */
export const guardsBlock = defineBlock({
  path: '',
  feature: 'guards',
  schema,
  rules: [uniqueNames('guards'), each(labelFault), each(guardrailFault), each(placeFault)],
})

type Entry = Unfinished<GuardConfig>

/** A rule for each guard that returns the invalid key with a message, or null. */
function each(fault: (entry: Entry) => readonly [key: string, message: string] | null): RuleOf<typeof schema> {
  return ({ guards = [] }) =>
    guards.flatMap((entry, index): Problem[] => {
      const found = entry === undefined ? null : fault(entry)
      if (found === null) return []
      const [key, message] = found
      return [{ path: `guards[${index}].${key}`, message, severity: 'error' }]
    })
}

/** Tokens separate labels by spaces, and `*` stands for all. */
function labelFault({ label }: Entry) {
  const isLabel = label === undefined || /^(?!\*$)[\x21-\x7e]{1,64}$/.test(label)
  return isLabel ? null : (['label', 'must be 1 to 64 printable ASCII characters without spaces, and not *'] as const)
}

function guardrailFault({ type, url: text = '', region = '' }: Entry) {
  const url = URL.parse(text)
  if (type !== 'bedrock-guardrail' || url === null) return null
  if (!appliesGuardrail(url)) {
    return [
      'url',
      'must be that of a guardrail: https://bedrock-runtime.<region>.amazonaws.com/guardrail/<id>/version/<version>/apply',
    ] as const
  }
  return regionIn(url) !== '' || region !== '' ? null : (['region', 'is required: the URL does not name one'] as const)
}

function placeFault({ url = '', region = '', jurisdiction = '' }: Entry) {
  return placeContradictions({ upstream: url, region, jurisdiction }, null)[0] ?? null
}
