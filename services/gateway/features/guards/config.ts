import { type ConfigBlock, key, uniqueNames } from '@plat/config'
import Type from 'typebox'

const guard = Type.Object({
  name: key.needed('Unique name.'),
  type: Type.Enum(['openai-moderation', 'llama-prompt-guard', 'lakera', 'bedrock-guardrail', 'http-json'], {
    description: 'Protocol of the classifier.',
  }),
  url: Type.String({ minLength: 1, format: 'http-url', description: 'Where it stands; checked for residency.' }),
  model: key.text('Model that it shall use.'),
  apiKeyFile: key.file('Its key.'),
  on: Type.Array(Type.Enum(['toolResult', 'toolArgs', 'llmPrompt']), {
    default: ['toolResult'],
    description: 'What it reads.',
  }),
  namespaces: key.texts('Default all.'),
  servers: key.texts('Default all; may name `llm/<route>`.'),
  tools: key.texts('Globs; default all.'),
  threshold: Type.Number({
    default: 0.5,
    exclusiveMinimum: 0,
    maximum: 1,
    description: 'Score from which text is bad.',
  }),
  label: key.text('Taint label of bad text.', 'prompt-injection-suspected'),
  action: key.choice(['taint', 'block'], 'taint', 'What bad text does.'),
  timeoutMs: key.millis('Time for one answer.', 300),
  failOpen: key.flag('Proceed without an answer, audited as `guard_unavailable`.', true),
  maxBytes: key.whole('Bytes of one window; longer text is read in up to 32.', 16_384, 1),
  scorePath: key.text('Where the score stands in the answer.', 'score'),
  category: key.text('Category that counts.'),
  positiveIndex: key.whole('Class that is bad.', 1, 0),
  region: key.text('Cloud region.'),
})

/** Injection classifiers (document 3). */
export const guardsBlock = {
  path: '',
  feature: 'guards',
  built: false,
  schema: Type.Object({
    guards: Type.Array(guard, { default: [], description: 'Injection classifiers.' }),
  }),
  rules: [uniqueNames('guards')],
} satisfies ConfigBlock
