import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDenial } from '../../../call/index.ts'
import { messages } from '../dialects/messages.ts'
import { readModelBody } from '../request.ts'
import { translatorOf } from './all.ts'
import { translated } from './testing.ts'
import type { Speech } from './translator.ts'

const of = (speaks: Speech, method = 'chat/completions') => translatorOf(speaks, method) ?? assert.fail(speaks)
const CHATS: readonly Speech[] = ['converse', 'gemini', 'anthropic', 'anthropic-vertex', 'anthropic-bedrock']

const PNG = 'iVBORw0KGgo='
const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather.',
    parameters: { type: 'object', properties: { at: { type: 'string' } } },
  },
}
const conversation = {
  model: 'm',
  max_completion_tokens: 50,
  temperature: 0.5,
  stop: 'END',
  messages: [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Where is this?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
      ],
    },
    {
      role: 'assistant',
      content: '',
      reasoning_content: 'a thought of before',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"at":12345678901234567890}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: '{"sun":true}' },
    { role: 'user', content: 'And now?' },
  ],
  tools: [weather],
  tool_choice: 'required',
}

test('a conversation with an image and a tool is translated for Converse', () => {
  assert.deepEqual(translated(of('converse'), conversation), {
    system: [{ text: 'Be brief.' }],
    messages: [
      {
        role: 'user',
        content: [{ text: 'Where is this?' }, { image: { format: 'png', source: { bytes: PNG } } }],
      },
      {
        role: 'assistant',
        content: [{ toolUse: { toolUseId: 'c1', name: 'weather', input: { at: Number('12345678901234567890') } } }],
      },
      {
        role: 'user',
        content: [{ toolResult: { toolUseId: 'c1', content: [{ text: '{"sun":true}' }] } }, { text: 'And now?' }],
      },
    ],
    inferenceConfig: { maxTokens: 50, temperature: 0.5, stopSequences: ['END'] },
    toolConfig: {
      tools: [
        {
          toolSpec: {
            name: 'weather',
            description: 'The weather.',
            inputSchema: { json: weather.function.parameters },
          },
        },
      ],
      toolChoice: { any: {} },
    },
  })
})

test('the same conversation is translated for Gemini', () => {
  assert.deepEqual(translated(of('gemini'), conversation), {
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    contents: [
      { role: 'user', parts: [{ text: 'Where is this?' }, { inlineData: { mimeType: 'image/png', data: PNG } }] },
      { role: 'model', parts: [{ functionCall: { name: 'weather', args: { at: Number('12345678901234567890') } } }] },
      {
        role: 'user',
        parts: [{ functionResponse: { name: 'weather', response: { sun: true } } }, { text: 'And now?' }],
      },
    ],
    tools: [
      {
        functionDeclarations: [
          { name: 'weather', description: 'The weather.', parametersJsonSchema: weather.function.parameters },
        ],
      },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY' } },
    generationConfig: { maxOutputTokens: 50, temperature: 0.5, stopSequences: ['END'] },
  })
})

test('the same conversation is translated for Anthropic, and for the clouds that host its models', () => {
  const message = {
    max_tokens: 50,
    temperature: 0.5,
    stop_sequences: ['END'],
    system: [{ type: 'text', text: 'Be brief.' }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Where is this?' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        ],
      },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: { at: Number('12345678901234567890') } }],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c1', content: '{"sun":true}' },
          { type: 'text', text: 'And now?' },
        ],
      },
    ],
    tools: [{ name: 'weather', description: 'The weather.', input_schema: weather.function.parameters }],
    tool_choice: { type: 'any' },
  }
  assert.deepEqual(translated(of('anthropic'), conversation, 'claude'), { model: 'claude', ...message })
  const streaming = { ...conversation, stream: true }
  assert.deepEqual(translated(of('anthropic-vertex'), streaming), {
    anthropic_version: 'vertex-2023-10-16',
    ...message,
    stream: true,
  })
  assert.deepEqual(translated(of('anthropic-bedrock'), streaming), {
    anthropic_version: 'bedrock-2023-05-31',
    ...message,
  })
})

test('a number of twenty digits in the arguments of a call stays that number', () => {
  for (const speaks of CHATS) {
    const body = readModelBody(Buffer.from(JSON.stringify(conversation)), messages)
    assert.ok(!isDenial(body))
    const bytes = of(speaks).request({ body, model: 'm', reasoning: false, betas: null })
    assert.ok(!isDenial(bytes) && Buffer.from(bytes).includes('12345678901234567890'), speaks)
  }
})

const say = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const image = (url: string) => say([{ type: 'image_url', image_url: { url } }])
/** Members that no provider supports. */
const NOWHERE: readonly (readonly [more: object, param: string])[] = [
  [{ n: 2 }, 'n'],
  [{ logprobs: true }, 'logprobs'],
  [{ logit_bias: { 1: 5 } }, 'logit_bias'],
  [{ store: true }, 'store'],
  [{ modalities: ['text', 'audio'] }, 'modalities'],
  [{ prediction: { type: 'content' } }, 'prediction'],
  [{ made_up: 1 }, 'made_up'],
  [{ constructor: 1 }, 'constructor'],
  [{ tool_choice: { type: 'allowed_tools' } }, 'tool_choice'],
  [{ tools: [{ ...weather, cache_control: {} }] }, 'tools[0].cache_control'],
  [{ tools: [{ type: { toString: 1 } }] }, 'tools[0]'],
  [{ tools: [{ type: 'custom', custom: { name: 'x' } }] }, 'tools[0].type'],
  [{ tools: [{ type: 'function', function: { name: 'x', more: 1 } }] }, 'tools[0].function.more'],
  [{ messages: [{ role: 'user', content: 'x', name: 'Ada' }] }, 'messages[0].name'],
  [{ messages: [{ role: 'function', name: 'x', content: 'y' }] }, 'messages[0].role'],
  [{ messages: [{ role: 'tool', tool_call_id: 'gone', content: 'y' }] }, 'messages[0].tool_call_id'],
  [{ messages: [{ role: 'tool', tool_call_id: { toString: 1 }, content: 'y' }] }, 'messages[0].tool_call_id'],
  [say([{ type: 'file', file: { file_id: 'f' } }]), 'messages[0].content[0].file.file_data'],
  [
    say([{ type: 'image_url', image_url: { url: 'data:text/html;base64,eA==' } }]),
    'messages[0].content[0].image_url.url',
  ],
  [
    say([{ type: 'image_url', image_url: { url: 'https://x/i.png', detail: 'low' } }]),
    'messages[0].content[0].image_url.detail',
  ],
  [say([{ type: 'hologram', hologram: {} }]), 'messages[0].content[0].type'],
  [
    {
      messages: [
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'x', arguments: '[1]' } }] },
      ],
    },
    'messages[0].tool_calls[0].function.arguments',
  ],
]
/** Members that one provider does not support. */
const NOT_HERE: readonly (readonly [Speech, object, string | undefined])[] = [
  ['converse', image('https://x/i.png'), 'messages[0].content[0].image_url.url'],
  ['gemini', image('https://x/i.png'), 'messages[0].content[0].image_url.url'],
  ['converse', image('data:image/tiff;base64,eA=='), 'messages[0].content[0].image_url.url'],
  [
    'converse',
    say([{ type: 'input_audio', input_audio: { data: 'eA==', format: 'wav' } }]),
    'messages[0].content[0].input_audio',
  ],
  [
    'anthropic',
    say([{ type: 'input_audio', input_audio: { data: 'eA==', format: 'wav' } }]),
    'messages[0].content[0].input_audio',
  ],
  ['converse', { seed: 1 }, 'seed'],
  ['anthropic', { seed: 1 }, 'seed'],
  ['converse', { user: 'u' }, 'user'],
  ['gemini', { user: 'u' }, 'user'],
  ['converse', { reasoning_effort: 'low' }, 'reasoning_effort'],
  ['gemini', { reasoning_effort: 'enormous' }, 'reasoning_effort'],
  ['converse', { response_format: { type: 'json_object' } }, 'response_format'],
  ['anthropic', { response_format: { type: 'json_object' } }, 'response_format'],
  ['gemini', { parallel_tool_calls: false }, 'parallel_tool_calls'],
  ['converse', { ...conversation, tool_choice: 'none' }, 'tool_choice'],
  ['gemini', { tools: [{ type: 'code_execution' }] }, 'tools[0].type'],
  ['converse', { tools: [{ type: 'web_search' }] }, 'tools[0].type'],
]

test('a member without a counterpart at the provider is refused by name, unless it changes nothing', () => {
  const chat = { model: 'm', ...say('hi') }
  for (const speaks of CHATS) {
    for (const [more, param] of NOWHERE) assert.equal(translated(of(speaks), { ...chat, ...more }), param, speaks)
    const neutral = {
      n: 1,
      logprobs: false,
      store: false,
      user: null,
      stream_options: { include_usage: true },
    }
    assert.deepEqual(translated(of(speaks), { ...chat, ...neutral }), translated(of(speaks), chat), speaks)
  }
  for (const [speaks, more, param] of NOT_HERE)
    assert.equal(translated(of(speaks), { ...chat, ...more }), param, speaks)
})

test('a message that says nothing parts no turn: some providers insist that sides take turns', () => {
  const hollow = { role: 'assistant', content: '' }
  const user = (content: string) => ({ role: 'user', content })
  const request = (messages: readonly object[]) => ({ model: 'm', messages })
  for (const speaks of CHATS)
    assert.deepEqual(
      translated(of(speaks), request([user('hi'), hollow, user('there')])),
      translated(of(speaks), request([user('hi'), user('there')])),
      speaks,
    )
})

/** A member of the request to a provider. */
const refusalOf = (speaks: Speech, more: object) => {
  const value = translated(of(speaks), { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more })
  assert.ok(typeof value === 'object' && value !== null)
  return new Map(Object.entries(value))
}

test('response formats, tool choices and members of one provider are translated where the provider has them', () => {
  const schema = { type: 'object', properties: { a: { type: 'integer' } } }
  const response_format = { type: 'json_schema', json_schema: { name: 'answer', schema } }
  const textFormat = {
    type: 'json_schema',
    structure: { jsonSchema: { name: 'answer', schema: JSON.stringify(schema) } },
  }
  assert.deepEqual(refusalOf('converse', { response_format }).get('outputConfig'), { textFormat })
  const json = { responseMimeType: 'application/json' }
  assert.deepEqual(refusalOf('gemini', { response_format }).get('generationConfig'), {
    ...json,
    responseJsonSchema: schema,
  })
  assert.deepEqual(refusalOf('gemini', { response_format: { type: 'json_object' } }).get('generationConfig'), json)
  assert.deepEqual(refusalOf('anthropic', { response_format }).get('output_config'), {
    format: { type: 'json_schema', schema },
  })
  const one = { tools: [weather], tool_choice: { type: 'function', function: { name: 'weather' } } }
  const config = { mode: 'ANY', allowedFunctionNames: ['weather'] }
  assert.deepEqual(refusalOf('gemini', one).get('toolConfig'), { functionCallingConfig: config })
  assert.deepEqual(refusalOf('anthropic', { ...one, parallel_tool_calls: false }).get('tool_choice'), {
    type: 'tool',
    name: 'weather',
    disable_parallel_tool_use: true,
  })
  const strict = { tools: [{ ...weather, function: { ...weather.function, strict: true } }] }
  assert.deepEqual(refusalOf('gemini', strict).get('toolConfig'), { functionCallingConfig: { mode: 'VALIDATED' } })
  assert.match(JSON.stringify(refusalOf('converse', strict).get('toolConfig')), /"strict":true/)
  assert.equal(refusalOf('converse', { tools: [weather], tool_choice: 'none' }).get('toolConfig'), undefined)
  assert.deepEqual(refusalOf('gemini', { tools: [{ type: 'google_search' }] }).get('tools'), [{ googleSearch: {} }])
  const grounding = { tools: [{ type: 'system_tool', name: 'nova_grounding' }] }
  assert.match(
    JSON.stringify(refusalOf('converse', grounding).get('toolConfig')),
    /"systemTool":\{"name":"nova_grounding"\}/,
  )
  assert.deepEqual(refusalOf('gemini', { reasoning_effort: 'medium' }).get('generationConfig'), {
    thinkingConfig: { thinkingBudget: 8192 },
  })
  assert.deepEqual(refusalOf('anthropic', { user: 'ada' }).get('metadata'), { user_id: 'ada' })
  assert.equal(refusalOf('anthropic', {}).get('max_tokens'), 4096)
})

test('documents get different names, which Bedrock accepts', () => {
  const file = (filename: string) => ({
    type: 'file',
    file: { filename, file_data: 'data:application/pdf;base64,eA==' },
  })
  const value = refusalOf('converse', { messages: [{ role: 'user', content: [file('a/b_c.pdf'), file('a/b_c.pdf')] }] })
  assert.deepEqual(
    [...JSON.stringify(value.get('messages')).matchAll(/"name":"([^"]*)"/g)].map(([, name]) => name),
    ['1 a b c pdf', '2 a b c pdf'],
  )
})

test('the signature of a thought comes back to Gemini with its call', () => {
  const call = {
    id: 'c',
    type: 'function',
    function: { name: 'x', arguments: '' },
    extra_content: { google: { thought_signature: 'c2ln' } },
  }
  const value = refusalOf('gemini', { messages: [{ role: 'assistant', content: null, tool_calls: [call] }] })
  assert.deepEqual(value.get('contents'), [
    { role: 'model', parts: [{ functionCall: { name: 'x', args: {} }, thoughtSignature: 'c2ln' }] },
  ])
})

test('messages go to the clouds with the bytes that came, but for the model, the stream and the version', () => {
  const text =
    '{"model":"claude","max_tokens":9,"stream":true, "messages":[{"role":"user","content":"1.0"}],"seed":1.0}'
  const body = readModelBody(Buffer.from(text), messages)
  assert.ok(!isDenial(body))
  const sent = (speaks: Speech, betas: string | null) => {
    const bytes = of(speaks, 'messages').request({ body, model: 'x', reasoning: false, betas })
    return isDenial(bytes) ? assert.fail(bytes.reason) : Buffer.from(bytes).toString()
  }
  assert.equal(
    sent('anthropic-vertex', 'a'),
    '{"anthropic_version":"vertex-2023-10-16","max_tokens":9,"stream":true, "messages":[{"role":"user","content":"1.0"}],"seed":1.0}',
  )
  assert.equal(
    sent('anthropic-bedrock', 'a, b'),
    '{"anthropic_beta":["a","b"],"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[{"role":"user","content":"1.0"}],"seed":1.0}',
  )
  const bare = readModelBody(Buffer.from('{"model":"claude"}'), messages)
  assert.ok(!isDenial(bare))
  const least = of('anthropic-bedrock', 'messages').request({ body: bare, model: 'x', reasoning: false, betas: null })
  assert.deepEqual(JSON.parse(Buffer.from(isDenial(least) ? '' : least).toString()), {
    anthropic_version: 'bedrock-2023-05-31',
  })
})
