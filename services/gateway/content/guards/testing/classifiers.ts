import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { isObject } from '@plat/core'
import type { GuardConfig } from '../config.ts'

/** A request received by a classifier. */
export interface Posted {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

/** A classifier as documented by its vendor: URL, request and response. */
export interface Published {
  readonly type: GuardConfig['type']
  readonly path: string
  /** Required keys beside name, type and url. */
  readonly config: Partial<GuardConfig>
  /** Returns the text of a valid request, otherwise throws. */
  text(posted: Posted): string
  /** Builds the response for an attack with this probability. */
  answer(score: number): object
  /** Whether it returns a probability instead of yes or no. */
  readonly graded: boolean
  /** Two categories, and a response with only the first; null without categories. */
  readonly categories: { readonly found: string; readonly other: string; readonly answer: object } | null
}

/** The five classifiers, as documented. */
export const published: readonly Published[] = [
  {
    type: 'openai-moderation',
    path: '/v1/moderations',
    config: { model: 'omni-moderation-latest' },
    text: ({ body }) => onlyText(body, 'input', { model: 'omni-moderation-latest' }),
    answer: (score) => moderated({ violence: score, hate: score / 2 }),
    graded: true,
    categories: { found: 'violence', other: 'hate', answer: moderated({ violence: 0.9, hate: 0.1 }) },
  },
  {
    type: 'llama-prompt-guard',
    path: '/classify',
    config: { model: 'meta-llama/Llama-Prompt-Guard-2-86M' },
    text: ({ body }) => onlyText(body, 'input', { model: 'meta-llama/Llama-Prompt-Guard-2-86M' }),
    answer: (score) => ({
      id: 'classify-1',
      object: 'list',
      created: 1,
      model: 'm',
      data: [{ index: 0, label: score > 0.5 ? 'LABEL_1' : 'LABEL_0', probs: [1 - score, score], num_classes: 2 }],
      usage: { prompt_tokens: 3, total_tokens: 3, completion_tokens: 0, prompt_tokens_details: null },
    }),
    graded: true,
    categories: null,
  },
  {
    type: 'lakera',
    path: '/v2/guard',
    config: { model: 'project-7' },
    text({ body }) {
      const { messages, project_id: project, breakdown, ...more } = fields(body)
      assert.deepEqual([project, more], ['project-7', {}])
      assert.ok(breakdown === undefined || breakdown === true)
      assert.ok(Array.isArray(messages) && messages.length === 1)
      return onlyText(messages[0], 'content', { role: 'user' })
    },
    answer: (score) => ({ flagged: score >= 0.5, metadata: { request_uuid: 'u' } }),
    graded: false,
    categories: {
      found: 'prompt_attack',
      other: 'pii',
      answer: {
        flagged: true,
        breakdown: [
          { detector_id: 'd1', detector_type: 'prompt_attack', detected: true, result: 'l1_confident' },
          { detector_id: 'd2', detector_type: 'pii/email', detected: false, result: 'l5_unlikely' },
        ],
        metadata: { request_uuid: 'u' },
      },
    },
  },
  {
    type: 'bedrock-guardrail',
    path: '/guardrail/gr7/version/1/apply',
    config: { region: 'eu-central-1' },
    text({ body }) {
      const { source, content, ...more } = fields(body)
      assert.deepEqual([source, more], ['INPUT', {}])
      assert.ok(Array.isArray(content) && content.length === 1)
      return onlyText(fields(content[0]).text, 'text', {})
    },
    answer: (score) => intervened(score >= 0.5, [{ type: 'PROMPT_ATTACK', confidence: 'HIGH' }]),
    graded: false,
    categories: {
      found: 'PROMPT_ATTACK',
      other: 'HATE',
      answer: intervened(true, [
        { type: 'PROMPT_ATTACK', confidence: 'MEDIUM' },
        { type: 'HATE', confidence: 'LOW' },
      ]),
    },
  },
  {
    type: 'http-json',
    path: '/judge',
    config: { scorePath: 'results.0.score' },
    text: ({ body }) => onlyText(body, 'text', { target: 'toolResult' }),
    answer: (score) => ({ results: [{ score }] }),
    graded: true,
    categories: { found: 'attack', other: 'spam', answer: { results: [{ score: { attack: true, spam: 0.2 } }] } },
  },
]

function moderated(scores: Readonly<Record<string, number>>): object {
  const categories = Object.fromEntries(Object.entries(scores).map(([name, score]) => [name, score > 0.5]))
  const flagged = Object.values(categories).includes(true)
  return { id: 'modr-1', model: 'omni', results: [{ flagged, categories, category_scores: scores }] }
}

function intervened(is: boolean, filters: readonly object[]): object {
  const assessments = is ? [{ contentPolicy: { filters: filters.map((one) => ({ ...one, action: 'BLOCKED' })) } }] : []
  return { action: is ? 'GUARDRAIL_INTERVENED' : 'NONE', assessments, outputs: [], usage: {} }
}

/** Returns the text of an object that has exactly these members besides. */
function onlyText(value: unknown, name: string, others: object): string {
  const { [name]: text, ...rest } = fields(value)
  assert.deepEqual(rest, others)
  assert.ok(typeof text === 'string')
  return text
}

function fields(value: unknown): Record<string, unknown> {
  assert.ok(isObject(value))
  return { ...value }
}
