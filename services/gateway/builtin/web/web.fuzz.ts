import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { parseRobots } from './read/robots-rules.ts'
import { decodeText } from './text/charset.ts'
import { readHtml } from './text/html.ts'
import { mediaType } from './text/media.ts'

const BASE = new URL('https://site.example/dir/')

const html = near([
  '<!doctype html><html><head><title>t</title><base href="/b/"><meta charset=utf-8></head>',
  '<p class="a" hidden>one &amp; two<br><a href="../x?y=1#z">link</a></p>',
  '<script>if (a<b) "</p>"</script><style>x</style><template><svg><title/></template>',
  '<ul><li>a<li>b</ul><table><tr><td>1<td>2</table><pre>\n x</pre><!-- c --><![CDATA[d]]>',
  '<textarea></textarea><noscript><plaintext><select><option></select>&#x110000;&#xD800;&notit;',
])

/** Any page can be read: within its limit, without errors, and without its programs. */
const pages = fc.asyncProperty(html, fc.integer({ min: 1, max: 200 }), async (page, limit) => {
  const read = await readHtml(page, BASE, limit)
  assert.ok(read.title.length <= 512)
  const whole = await readHtml(page, BASE, 1e6)
  assert.equal(whole.text.slice(0, Math.min(limit, read.text.length)), read.text.slice(0, limit))
  const quiet = await readHtml(`<script>${page.replaceAll(/<\/script/gi, '')}`, BASE, 1e6)
  assert.equal(quiet.text, '')
})

/** The text does not depend on the split of the page. */
const pieces = fc.asyncProperty(html, fc.nat(300), async (page, before) => {
  const pad = 'x'.repeat(Math.max(0, 64 * 1024 - before))
  const { text } = await readHtml(page, BASE, 1e6)
  const { text: padded } = await readHtml(`<i hidden>${pad}</i>${page}`, BASE, 1e6)
  assert.equal(padded, text)
})

const head = near(['text/html; charset="utf-8"', 'application/json;a=b;charset=latin1', 'image/*'])
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  html.map((text) => Buffer.from(text, 'utf16le')),
)

const characters = fc.property(bytes, head, (body, header) => {
  const media = mediaType(header)
  assert.ok(media === null || /^[^\s/;]+\/[^\s/;]+$/.test(media.type))
  assert.equal(typeof decodeText(body, media?.charset ?? null), 'string')
})

const robots = near(['User-agent: *\nDisallow: /a*b$\nAllow: /%C3%a9\n', '\r\nuser-agent: plat-web/1\r\nallow: *\r\n#'])

const rules = fc.asyncProperty(robots, near(['/a/b?c=d', '/%c3%A9', '/robots.txt']), async (text, path) => {
  const read = parseRobots(text, 'plat-web')
  assert.equal(typeof (await read.allows(path)), 'boolean')
  assert.equal(await read.allows('/robots.txt'), true)
})

/** Any content of a site is read or refused without errors. */
export const target = fuzzTarget('gateway: pages of the web', { pages, pieces, characters, rules })
