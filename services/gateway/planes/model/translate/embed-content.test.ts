import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '@plat/core'
import { isDenial } from '../../../call/index.ts'
import { batchEmbedContents } from '../dialects/embed-content.ts'
import { readModelBody } from '../request.ts'
import { translatorOf } from './all.ts'
import { facts } from './testing.ts'
import type { Speech } from './translator.ts'

const content = (text: string) => ({ parts: [{ text }] })

/** The translated request; the message of a refusal. */
function requestOf(speaks: Speech, requests: readonly object[], model: string): unknown {
  const translator = translatorOf(speaks, 'batchEmbedContents') ?? assert.fail('no translator')
  const body = readModelBody(Buffer.from(JSON.stringify({ requests })), batchEmbedContents)
  assert.ok(!isDenial(body))
  const bytes = translator.request({ body, model, reasoning: false, betas: null })
  return isDenial(bytes) ? bytes.reason : JSON.parse(Buffer.from(bytes).toString())
}

test('task types and titles are those of Vertex AI, and task types have words at Cohere', () => {
  const query = { content: content('one'), taskType: 'RETRIEVAL_QUERY', outputDimensionality: 3 }
  assert.deepEqual(requestOf('gemini-vertex', [{ ...query, title: 't' }], 'e'), {
    instances: [{ content: 'one', title: 't', task_type: 'RETRIEVAL_QUERY' }],
    parameters: { outputDimensionality: 3 },
  })
  assert.deepEqual(requestOf('converse', [query, { ...query, content: content('two') }], 'cohere.embed-v4'), {
    texts: ['one', 'two'],
    input_type: 'search_query',
    output_dimension: 3,
  })
  const other = { ...query, taskType: 'FACT_VERIFICATION' }
  assert.match(String(requestOf('converse', [other], 'cohere.embed-v4')), /taskType must be one of RETRIEVAL_DOCUMENT/)
  assert.match(String(requestOf('converse', [{ content: content('one') }], 'cohere.embed-v4')), /taskType is required/)
  const titan = 'amazon.titan-embed-text-v2:0'
  assert.match(String(requestOf('converse', [query, query], titan)), /requests must be one text/)
  assert.deepEqual(requestOf('converse', [{ content: content('one') }], titan), { inputText: 'one' })
})

test('vectors without a place, or that are not numbers, are invalid responses', () => {
  const request = { requests: [{ content: content('one') }, { content: content('two') }] }
  const translator = translatorOf('openai', 'batchEmbedContents') ?? assert.fail('no translator')
  const answerOf = (data: readonly object[]) =>
    Buffer.from(runAtOnce(translator.answer(Buffer.from(JSON.stringify({ data })), facts, request))).toString()
  const [one, two] = [
    { index: 0, embedding: [1] },
    { index: 1, embedding: [2] },
  ]
  assert.equal(answerOf([two, one]), '{"embeddings":[{"values":[1]},{"values":[2]}]}')
  const invalid = [
    [one],
    [one, one],
    [one, { embedding: [2] }],
    [one, { ...two, index: 2 }],
    [one, { ...two, embedding: 'AAAA' }],
  ]
  for (const data of invalid)
    assert.throws(() => answerOf(data), { name: 'InvalidResponseError' }, JSON.stringify(data))
})
