import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storedContent } from './stored-content.ts'

const idsIn = (body: object) => storedContent(body).map(({ id }) => id)
const say = (...content: object[]) => ({ model: 'm', messages: [{ role: 'user', content }] })

test('every member that names a file, a container or a vector store is found', () => {
  const requests: readonly object[] = [
    say({ type: 'file', file: { file_id: 'x' } }),
    say({ type: 'document', source: { type: 'file', file_id: 'x' } }),
    say({ type: 'container_upload', file_id: 'x' }),
    say({ type: 'tool_result', content: [{ type: 'image', source: { type: 'file', file_id: 'x' } }] }),
    { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'x' }] }] },
    { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'x' }] }] },
    { input: [{ type: 'function_call_output', output: [{ type: 'input_image', file_id: 'x' }] }] },
    { input: [{ type: 'computer_call_output', output: { type: 'computer_screenshot', file_id: 'x' } }] },
    { prompt: { id: 'p', variables: { document: { type: 'input_file', file_id: 'x' } } } },
    { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['x'] } }] },
    { tools: [{ type: 'code_interpreter', container: 'x' }] },
    { tools: [{ type: 'file_search', vector_store_ids: ['x'] }] },
    { tools: [{ type: 'image_generation', input_image_mask: { file_id: 'x' } }] },
    { container: 'x' },
    { container: { id: 'x', skills: [] } },
    { input_file_id: 'x' },
    { tools: [{ fileSearch: { fileSearchStoreNames: ['x'] } }] },
    { tools: [{ retrieval: { vertexAiSearch: { datastore: 'x' } } }] },
    { tools: [{ retrieval: { vertexRagStore: { ragResources: [{ ragCorpus: 'x' }] } } }] },
    { contents: [{ parts: [{ fileData: { fileUri: 'x' } }] }] },
    { contents: [], cachedContent: 'x' },
    { contents: [], cached_content: 'x' },
    { 'images[][file_id]': 'x' },
    { 'file_ids[]': ['x'] },
    { 'container[id]': 'x' },
    { 'images[][image_url][]': ['data:image/png;base64,AAAA'], 'mask[file_id]': 'x' },
    { contents: [{ parts: [{ functionResponse: { name: 'f', parts: [{ fileData: { fileUri: 'x' } }] } }] }] },
  ]
  for (const request of requests) assert.deepEqual(idsIn(request), ['x'], JSON.stringify(request))
})

test('what is named several times is there once', () => {
  assert.deepEqual(idsIn({ tools: [{ vector_store_ids: ['x', 'y', 'x', '', 7] }], input: [{ file_id: 'y' }] }), [
    'y',
    'x',
  ])
})

test('addresses that a provider reads with credentials of the account count, public ones do not', () => {
  const at = (url: string) => [
    say({ type: 'image_url', image_url: { url } }),
    { input: [{ content: [{ type: 'input_file', file_url: url }] }] },
    { contents: [{ parts: [{ fileData: { fileUri: url } }] }] },
  ]
  const stored = ['gs://bucket/a.pdf', ' GS://bucket/a', 's3://bucket/a', 'oss://bucket/a']
  for (const url of [...stored, 'https://generativelanguage.googleapis.com/v1beta/files/a'])
    for (const request of at(url)) assert.deepEqual(idsIn(request), [url])
  for (const url of ['https://site.example/files/a.png', 'https://storage.googleapis.com/public/a.png'])
    for (const request of at(url)) assert.deepEqual(idsIn(request), [])
  assert.deepEqual(idsIn(say({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } })), [])
})

test('a text that Qwen replaces by a file counts, one that mentions such a text does not', () => {
  const system = (content: unknown) => ({ messages: [{ role: 'system', content }] })
  const ids = 'fileid://file-fe-1,fileid://file-fe-2'
  for (const content of [ids, [{ type: 'text', text: ids }]]) assert.deepEqual(idsIn(system(content)), [ids])
  for (const content of ['What is fileid://?', [{ type: 'text', text: 'no fileid:' }]])
    assert.deepEqual(idsIn(system(content)), [])
})

test('schemas, arguments and results of functions, and absent names are not names of files', () => {
  const properties = { file_id: { type: 'string' }, container: { type: 'string', enum: ['a'] } }
  const requests: readonly object[] = [
    { tools: [{ type: 'function', function: { name: 'f', parameters: { properties, file_id: 'x' } } }] },
    { tools: [{ name: 'f', input_schema: { properties, examples: [{ file_id: 'x' }] } }] },
    { tools: [{ functionDeclarations: [{ name: 'f', parameters: { file_id: 'x' } }] }] },
    { response_format: { type: 'json_schema', json_schema: { schema: { default: { file_id: 'x' } } } } },
    { metadata: { file_id: 'x' } },
    say({ type: 'tool_use', id: 't', name: 'f', input: { file_id: 'x', container: 'y' } }),
    say({ type: 'text', text: 'a', citations: [{ type: 'char_location', file_id: 'x' }] }),
    { contents: [{ parts: [{ functionCall: { args: { file_id: 'x' } } }] }] },
    { contents: [{ parts: [{ functionResponse: { response: { file_id: 'x' } } }] }] },
    { container: null, tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
    say({ type: 'text', text: 'the member file_id of gs://bucket' }),
  ]
  for (const request of requests) assert.deepEqual(idsIn(request), [], JSON.stringify(request))
})

test('what would be opaque in a part of a request is not opaque as the request itself', () => {
  assert.deepEqual(idsIn({ type: 'tool_use', input: [{ content: [{ file_id: 'x' }] }] }), ['x'])
  assert.deepEqual(idsIn({ response: { file_id: 'x' } }), ['x'])
})
