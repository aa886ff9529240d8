import assert from 'node:assert/strict'
import { test } from 'node:test'
import { translatorOf } from './all.ts'
import { readContents } from './gemini-request.ts'
import { type Option, UntranslatableError } from './prompt.ts'
import { readResponses } from './responses-request.ts'
import { translated } from './testing.ts'

const THINKS: readonly Option[] = ['reasoning_effort']

/** The member that cannot be translated. */
function refused(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    if (error instanceof UntranslatableError) return error.message
    throw error
  }
  return ''
}

test('the members that Codex sends with every request do not fail a translated call, but a namespace of tools does', () => {
  const request = { model: 'm', input: 'hello', store: false, client_metadata: { turn_id: 't' }, prompt_cache_key: 'k' }
  assert.equal(readResponses(request, []).turns.length, 1)
  const tools = [{ type: 'namespace', name: 'mcp__files', tools: [{ type: 'function', name: 'read' }] }]
  assert.match(
    refused(() => readResponses({ ...request, tools }, [])),
    /namespace/,
  )
})

test('thinkingConfig sets the effort where a provider has one, and is ignored elsewhere', () => {
  const contents = [{ role: 'user', parts: [{ text: 'hello' }] }]
  const request = { contents, generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 8192 } } }
  assert.equal(readContents(request, THINKS, false).effort, 'medium')
  assert.equal(readContents(request, [], false).effort, null)
})

test('schemas of functions are read under the name that Google’s Python client writes', () => {
  const contents = [{ role: 'user', parts: [{ text: 'hello' }] }]
  const schema = { type: 'object', properties: { path: { type: 'string' } } }
  const declared = (more: object) => ({ contents, tools: [{ functionDeclarations: [{ name: 'read', ...more }] }] })
  const schemaOf = (more: object) => readContents(declared(more), [], false).tools[0]?.schema
  assert.deepEqual(schemaOf({ parameters_json_schema: schema, response_json_schema: { type: 'string' } }), schema)
  assert.deepEqual(schemaOf({ parametersJsonSchema: schema }), schema)
  const both = declared({ parameters_json_schema: schema, parametersJsonSchema: schema })
  assert.match(
    refused(() => readContents(both, [], false)),
    /parameters_json_schema|same member/,
  )
})

test('the result of a call may repeat the name of the call, as CrewAI does, and no other', () => {
  const call = { id: 'c', type: 'function', function: { name: 'read', arguments: '{}' } }
  const request = (name: string) => ({
    messages: [
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', name, content: 'text' },
    ],
  })
  const anthropic = translatorOf('anthropic', 'chat/completions') ?? assert.fail()
  assert.equal(typeof translated(anthropic, request('read')), 'object')
  assert.equal(translated(anthropic, request('write')), 'messages[2].name')
})
