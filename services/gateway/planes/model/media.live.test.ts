import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { startMediaServer } from '@plat/testkit/media-server'
import { until } from '@plat/testkit/until'
import OpenAI, { toFile } from 'openai'
import { started } from '../../testing/started.ts'
import { outcomesOf } from './testing.ts'

const SCOPES = 'models:r models.images:r models.audio:r'
const prices = {
  version: 1,
  currency: 'USD',
  id: 'media',
  models: {
    'openai/i': { perImage: { '1024x1024': '0.04', '1024x1024/high': '0.2', '*': '0.5' } },
    'openai/t': { input: '5', imageInput: '10', output: '40', perImage: { '*': '0.3' } },
    'openai/s': { characters: '15' },
    'openai/w': { perMinute: '0.006' },
    'openai/short': { perMinute: '0.006', maxMinutes: 25 },
  },
}

/** A gateway with one route to a provider of images and sound, and the official client. */
async function setUp(t: TestContext, { scope = SCOPES, config = {}, route = {} } = {}) {
  const provider = await startMediaServer()
  t.after(() => provider.close())
  const dir = tempFolder()
  const auditPath = join(dir, 'audit.jsonl')
  const pricingFile = join(dir, 'prices.json')
  await writeFile(pricingFile, JSON.stringify(prices))
  const models = { r: { upstream: provider.url, ...route } }
  const { gateway, issuer } = await started(t, { models, auditPath, pricingFile, ...config })
  const clientAt = (path: string, granted = scope) =>
    new OpenAI({ baseURL: gateway.url + path, apiKey: issuer.token({ scope: granted }), maxRetries: 0 })
  const outcomes = () => outcomesOf(auditPath)
  const outcome = async () => {
    await until(async () => (await outcomes()).length > 0, 'the outcome')
    return (await outcomes()).at(-1) ?? assert.fail()
  }
  return { provider, gateway, issuer, clientAt, client: clientAt('/llm/r/v1'), outcomes, outcome }
}

/** Silence in PCM, 16,000 bytes a second. */
function wave(seconds: number): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0, 'latin1')
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(8000, 24)
  head.writeUInt32LE(16_000, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36, 'latin1')
  return Buffer.concat([head, Buffer.alloc(16_000 * seconds)])
}

const image = (name = 'cat.png') => toFile(Buffer.from('\x89PNG not really'), name, { type: 'image/png' })

test('images are generated, priced by size and quality, and counted', async (t) => {
  // Shows D3.metric.plat_gateway_model_media_total, D3.modelUploads.maxBytes.
  const { client, clientAt, provider, outcome, gateway } = await setUp(t)
  const request = { model: 'i', prompt: 'a cat', n: 2, size: '1024x1024', quality: 'high' } as const
  const answer = await client.images.generate(request)
  assert.equal(answer.data?.length, 2)
  assert.deepEqual(provider.calls.at(-1)?.fields, { ...request })
  const { op, method, server, tool, media, costMicros, usageSource } = await outcome()
  assert.deepEqual([op, method, server, tool], ['model.image', 'images/generations', 'llm/r', 'i'])
  assert.deepEqual([media, costMicros, usageSource], [{ count: 2, unit: 'images' }, 400_000, 'reported'])
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
  assert.match(metrics, /plat_gateway_model_media_total\{route="r",unit="images"\} 2/)
  assert.equal((await clientAt('/llm/v1').images.generate({ model: 'i', prompt: 'x' })).data?.length, 1)
})

test('the texts beside images are redacted, whatever the size of the images', async (t) => {
  const dlp = { dlpProfiles: { p: { detectors: ['email'], maxScanBytes: 1000 } }, dlp: { defaultProfile: 'p' } }
  const { client, provider } = await setUp(t, { config: dlp })
  provider.says('ada@example.com')
  const { data } = await client.images.generate({ model: 'i', prompt: 'bob@example.com' })
  assert.equal(data?.[0]?.b64_json?.length, 40_000)
  assert.doesNotMatch(data?.[0]?.revised_prompt ?? '@example', /@example/)
  assert.doesNotMatch(String(provider.calls[0]?.fields.prompt), /@example/)
})

test('edits reach the provider byte for byte, fields before files, with the route’s model', async (t) => {
  const { client, provider, outcome } = await setUp(t, { route: { aliases: { mine: 't' } } })
  const big = Buffer.alloc(3_000_000, 'pixels')
  const images = [await toFile(big, 'big.png', { type: 'image/png' }), await image()]
  await client.images.edit({ image: images, prompt: 'add a hat', model: 'mine', n: 1 })
  const { fields, files = [] } = provider.calls.at(-1) ?? {}
  assert.deepEqual(fields, { prompt: 'add a hat', model: 't', n: '1' })
  assert.deepEqual(
    files.map(({ part, filename, type, bytes }) => [part, filename, type, bytes.equals(big)]),
    [
      ['image[]', 'big.png', 'image/png', true],
      ['image[]', 'cat.png', 'image/png', false],
    ],
  )
  // By tokens, as the provider reports them: 100 of text, 400 of images, 1000 of output.
  const { costMicros, media, usage, bytesUp } = await outcome()
  assert.deepEqual([costMicros, media.count, usage.prompt], [100 * 5 + 400 * 10 + 1000 * 40, 1, 500])
  assert.ok(bytesUp > big.length)
  assert.deepEqual(
    (await readdir(tmpdir())).filter((name) => name.startsWith('plat-upload-')),
    [],
  )
})

test('speech is relayed as it comes and priced by characters', async (t) => {
  const { client, outcome } = await setUp(t)
  const sound = await client.audio.speech.create({ model: 's', voice: 'alloy', input: 'x'.repeat(1000) })
  assert.equal(sound.headers.get('content-type'), 'audio/mpeg')
  assert.equal((await sound.arrayBuffer()).byteLength, 300_000)
  const { op, media, costMicros } = await outcome()
  assert.deepEqual([op, media, costMicros], ['model.audio', { count: 1000, unit: 'characters' }, 15_000])
})

test('sound that the provider cuts off does not look complete', async (t) => {
  const { client, provider, outcome } = await setUp(t)
  provider.dies()
  const sound = await client.audio.speech.create({ model: 's', voice: 'alloy', input: 'hello' })
  await assert.rejects(sound.arrayBuffer())
  assert.equal((await outcome()).result, 'failed')
})

test('transcripts are relayed in every format, priced by the minute, and redacted', async (t) => {
  const dlp = { dlpProfiles: { p: { detectors: ['email'] } }, dlp: { defaultProfile: 'p' } }
  const { client, provider, outcomes } = await setUp(t, { config: dlp })
  const file = () => toFile(wave(90), 'talk.wav', { type: 'audio/wav' })
  provider.says('write to ada@example.com')
  const json = await client.audio.transcriptions.create({ file: await file(), model: 'w', prompt: 'bob@example.com' })
  assert.match(json.text, /^write to (?!ada@example\.com)/)
  assert.doesNotMatch(String(provider.calls.at(-1)?.fields.prompt), /bob@example/)
  const text = await client.audio.transcriptions.create({ file: await file(), model: 'w', response_format: 'text' })
  assert.match(String(text), /^write to (?!ada@example\.com)/)
  const english = await client.audio.translations.create({ file: await file(), model: 'w' })
  assert.match(english.text, /^write to /)
  await until(async () => (await outcomes()).length === 3, 'three outcomes')
  const [first] = await outcomes()
  assert.deepEqual([first.media, first.costMicros], [{ count: 90, unit: 'seconds' }, 9000])
})

test('a scope for chats permits neither images nor sound, and the refusal names the missing one', async (t) => {
  const { clientAt, provider } = await setUp(t)
  for (const path of ['/llm/r/v1', '/llm/v1']) {
    const chatting = clientAt(path, 'models:r')
    const route = path === '/llm/v1' ? '<route>' : 'r'
    const generating = chatting.images.generate({ model: 'i', prompt: 'x' })
    await assert.rejects(generating, new RegExp(`403 .*scope models\\.images:${route} is required`))
    const transcribing = chatting.audio.transcriptions.create({ model: 'w', file: await image() })
    await assert.rejects(transcribing, new RegExp(`403 .*scope models\\.audio:${route} is required`))
  }
  const drawing = clientAt('/llm/r/v1', 'models.images:r')
  await drawing.images.generate({ model: 'i', prompt: 'x' })
  await assert.rejects(drawing.chat.completions.create({ model: 'i', messages: [] }), /scope models:r is required/)
  assert.equal(provider.calls.length, 1)
})

test('under a budget calls hold their most, and what nothing bounds or prices is refused', async (t) => {
  const { client, outcome } = await setUp(t, { config: { sessionBudgetUSD: 1 } })
  const generate = (more: object) => client.images.generate({ model: 'i', prompt: 'x', size: '1024x1024', ...more })
  // The provider chooses the quality: the dearest one is held, and the record has what it may have cost.
  await generate({ n: 4 })
  assert.equal((await outcome()).costMicros, 800_000)
  await assert.rejects(generate({ n: 2 }), /429 .*may cost more than the 0\.200000 USD left/)
  await assert.rejects(generate({ model: 'unpriced' }), /no price of images is known for openai\/unpriced \(perImage/)
  const sound = async (model: string, name: string) =>
    client.audio.transcriptions.create({
      model,
      file: await toFile(name === 'a.wav' ? wave(2) : Buffer.from('ID3'), name),
    })
  await assert.rejects(sound('w', 'a.mp3'), /403 .*nothing bounds how long this sound is.*send WAV.*maxMinutes/)
  await sound('w', 'a.wav')
  await sound('short', 'a.mp3')
})

test('a session that fills its share of the disk is refused while another uploads', async (t) => {
  // Shows D3.modelUploads.totalBytes, D3.modelUploads.dir.
  const dir = tempFolder()
  const config = { modelUploads: { maxBytes: 1_048_576, totalBytes: 8_388_608, dir } }
  const { gateway, issuer } = await setUp(t, { config })
  const open: AbortController[] = []
  const upload = (session: string, isEnded: boolean) => {
    const sub = `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/${session}`
    const abort = new AbortController()
    open.push(abort)
    const headers = {
      authorization: `Bearer ${issuer.token({ scope: SCOPES, sub, plat_session: session })}`,
      'content-type': 'multipart/form-data; boundary=b',
    }
    const part = (name: string) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\ni\r\n`
    const file = '--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\nx\r\n--b--'
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(Buffer.from(part('model') + part('prompt')))
        if (isEnded) stream.enqueue(Buffer.from(file))
        if (isEnded) stream.close()
      },
    })
    const request = { method: 'POST', headers, body, duplex: 'half', signal: abort.signal } as const
    return fetch(`${gateway.url}/llm/r/v1/images/edits`, request)
  }
  // Each open upload counts 256 KiB, and a session may hold an eighth of 8 MiB: four.
  const waiting = Array.from({ length: 4 }, () => upload('greedy', false).catch(() => null))
  const used = async () =>
    /^plat_gateway_pool_used\{pool="upload_bytes"\} (\d+)$/m.exec(
      await (await fetch(`${gateway.url}/metrics`)).text(),
    )?.[1]
  await until(async () => (await used()) === String(4 * 262_144), 'four open uploads')
  assert.equal((await upload('greedy', true)).status, 503)
  assert.equal((await upload('modest', true)).status, 200)
  for (const abort of open) abort.abort()
  await Promise.all(waiting)
  await until(async () => (await used()) === '0', 'no open upload')
})

test('forms that can be read in two ways, or are too large, are refused before anything is sent', async (t) => {
  const config = { modelUploads: { maxBytes: 1_048_576, totalBytes: 8_388_608 } }
  const { gateway, issuer, provider } = await setUp(t, { config })
  const send = async (body: string, type = 'multipart/form-data; boundary=b') => {
    const headers = { authorization: `Bearer ${issuer.token({ scope: SCOPES })}`, 'content-type': type }
    const response = await fetch(`${gateway.url}/llm/r/v1/images/edits`, { method: 'POST', headers, body })
    return `${response.status} ${(await response.text()).slice(0, 300)}`
  }
  const part = (head: string, text = 'x') => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`
  const file = part('name="image"; filename="a.png"')
  const fields = part('name="model"', 'i') + part('name="prompt"', '{"file_id":')
  const form = (...parts: readonly string[]) => `${fields}${parts.join('')}${file}--b--`
  assert.match(await send(`${fields}${file}--b--\r\n`), /^200 /)
  const refused: readonly (readonly [string, RegExp])[] = [
    [form(part('name="model"', 'other')), /^400 .*model is stated twice/],
    [`${fields}${part('name="model[]"')}${file}--b--\r\nmore`, /^400 .*goes on after its last part/],
    [`preamble\r\n${fields}${file}--b--`, /^400 .*no part at its beginning/],
    [`${fields}${file}`, /^400 .*ended too early/],
    [`${fields}--b--`, /^400 .*image must be a file/],
    [`${part('name="files"')}${file}--b--`, /^400 .*files is not a field/],
    [`${part('name="__proto__"')}${file}--b--`, /^400 .*not a field/],
    [`${fields}${part('name="image"; filename*=utf-8\'\'x')}--b--`, /^400 .*Content-Disposition/],
    [form(part('name="stream"', 'true')), /^400 .*stream is not relayed/],
    [form(part('name="n"', '99')), /^400 .*n must be a whole number from 1 to 10/],
    [form(part('name="n"', '1'), part('name="n[]"', '9')), /^400 .*n\[\] is stated with brackets and without/],
    [form(part('name="n[]"', '9')), /^400 .*n\[\] must be written without brackets/],
    [form(part('name="size[a]"', '9')), /^400 .*size\[a\] must be written without brackets/],
    [form(part('name="x[]"'), part('name="x"')), /^400 .*x is stated with brackets and without/],
    [`${fields}${part('name="image"; filename="a"', 'x'.repeat(2_000_000))}--b--`, /^413 .*modelUploads\.maxBytes/],
    [fields + part('name="user"').repeat(64), /^400 .*more than 64 parts/],
    [form(part('name="images[][file_id]"', 'file-1')), /^403 .*file_id\] names content at the provider/],
    [
      form(part('name="extra_body"', ' {"images":[{"file_id":"file-1"}]}')),
      /^403 .*file_id names content at the provider/,
    ],
    [form(part('name="images[]"', '{"image_url":"gs://a/b"}')), /^403 .*image_url names content at the provider/],
    [form(part('name="x"', '{"file_id":"a","file_id":""}')), /^400 .*x is neither a text nor strict/],
    [form(part('name="mask[image_url]"', 'gs://a/b')), /^403 .*image_url\] names content at the prov/],
    [form(part('name="file_ids[]"', 'file-1')), /^403 .*file_ids\[\] names content at the provider/],
    [form(part('name="models[]"', 'i')), /^400 .*models\[\] may name another model/],
    [form(part('name="x[]"', ' [{"image_url":"gs://a/b"}]')), /^403 .*image_url names content/],
  ]
  for (const [body, expected] of refused) assert.match(await send(body), expected)
  assert.match(await send('{}', 'application/json'), /^415 /)
  assert.equal(provider.calls.length, 1)
})
