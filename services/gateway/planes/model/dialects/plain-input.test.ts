import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPlainInput } from './plain-input.ts'

const chatPart = (part: object) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, part] }] })
const item = (part: object) => ({ input: [{ role: 'user', content: [part] }] })
const googlePart = (part: object) => ({ contents: [{ parts: [{ text: 'x' }, part] }] })

test('texts, images and documents of every API cost what text costs', () => {
  const plain: readonly object[] = [
    chatPart({ type: 'image_url', image_url: { url: 'data:image/png;base64,aaaa' } }),
    chatPart({ type: 'image_url', image_url: { url: 'https://site.example/a.png' } }),
    chatPart({ type: 'file', file: { file_data: 'data:application/pdf;base64,aaaa' } }),
    chatPart({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'aaaa' } }),
    chatPart({ type: 'tool_result', content: [{ type: 'image', source: { type: 'url', url: 'https://x.example' } }] }),
    { previous_response_id: 'resp_1', input: 'next' },
    { input: [{ type: 'item_reference', id: 'i' }] },
    item({ type: 'input_image', image_url: 'data:image/jpeg;base64,aaaa' }),
    item({ type: 'input_file', file_id: 'file-1' }),
    googlePart({ inlineData: { mimeType: 'image/webp', data: 'aaaa' } }),
    googlePart({ fileData: { mimeType: 'application/pdf', fileUri: 'https://files.example/1' } }),
  ]
  for (const value of plain) assert.ok(isPlainInput({ ...value }), JSON.stringify(value))
})

test('sound, video, predicted output and unknown parts do not, under whatever name they come', () => {
  const other: readonly object[] = [
    { prediction: { type: 'content', content: 'x' } },
    { audio: { voice: 'x' } },
    { prompt: { id: 'pmpt_1' }, input: 'x' },
    { messages: [{ role: 'assistant', audio: { id: 'a' } }] },
    chatPart({ type: 'input_audio', input_audio: { data: 'aaaa', format: 'wav' } }),
    chatPart({ type: 'image_url', image_url: { url: 'data:audio/wav;base64,aaaa' } }),
    chatPart({ type: 'file', file: { file_data: 'data:video/mp4;base64,aaaa' } }),
    chatPart({ type: 'document', source: { type: 'base64', media_type: 'audio/mpeg', data: 'aaaa' } }),
    chatPart({ type: 'tool_result', content: [{ type: 'container_upload', file_id: 'f' }] }),
    chatPart({ type: 'hologram' }),
    item({ type: 'input_audio', data: 'aaaa' }),
    { input: [{ type: 'function_call_output', output: [{ type: 'input_audio' }] }] },
    googlePart({ inlineData: { mimeType: 'audio/wav', data: 'aaaa' } }),
    googlePart({ inlineData: { data: 'aaaa' } }),
    googlePart({ fileData: { mimeType: 'video/mp4', fileUri: 'https://files.example/1' } }),
    { contents: [], systemInstruction: { parts: [{ inlineData: { mimeType: 'audio/wav', data: 'aaaa' } }] } },
  ]
  for (const value of other) assert.ok(!isPlainInput({ ...value }), JSON.stringify(value))
})
