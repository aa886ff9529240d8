import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readHtml } from './html.ts'

const BASE = new URL('https://site.example/dir/page')
const textOf = async (html: string, limit = 1e6) => (await readHtml(html, BASE, limit)).text

test('headings, paragraphs, lists, tables and code keep their shape', async () => {
  const html = `<!doctype html><html><head><title> A &amp;
    B </title></head><body><h1>Head <em>ing</em></h1><p>One<br>two.<p>Three <b>bold</b>.<hr><ul><li>first<li><p>second</p></li><li></li></ul>
    <table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table><pre>  as
     is &lt;b&gt;</pre>end<img alt="a picture">`
  assert.deepEqual(await readHtml(html, BASE, 1e6), {
    title: 'A & B',
    text: [
      '# Head ing\n\nOne\ntwo.\n\nThree bold.\n\n---\n\n- first\n\n- second\n\n| a | b\n| 1 | 2\n\n',
      '```\n  as\n     is <b>\n```\n\nenda picture',
    ].join(''),
  })
})

test('links include their target if it is a page', async () => {
  assert.equal(
    await textOf('see <a href="../x?a=1&amp;b=2">this <b>one</b></a>.'),
    'see [this one](https://site.example/x?a=1&b=2).',
  )
  assert.equal(await textOf('<base href="https://cdn.example/"><a href=y>y</a>'), '[y](https://cdn.example/y)')
  for (const href of ['#part', 'javascript:alert(1)', 'mailto:a@b.c', 'http://[', `/${'x'.repeat(2_000)}`])
    assert.equal(await textOf(`<a href="${href}">word</a>`), 'word', href)
  assert.equal(await textOf('a<a href=/x></a><a href=/y><img></a>b'), 'ab')
  assert.equal(
    await textOf('<a href=/x>one<a href=/y>two</a></a>'),
    '[one](https://site.example/x)[two](https://site.example/y)',
  )
})

test('programs, styles and hidden content are skipped', async () => {
  const unseen = [
    '<script>if (a < b) document.write("<p>x</p>")</script>',
    '<style>p::after { content: "x" }</style>',
    '<template><p>x</p></template>',
    '<noscript>x</noscript>',
    '<svg><title>x</title><text>x</text></svg>',
    '<div hidden>x<div>x</div>x</div>',
    '<span style="color: red; DISPLAY : none">x</span>',
    '<div style="visibility:hidden">x</div>',
    '<!-- x -->',
    '<select><option>x</select>',
  ]
  for (const html of unseen) assert.equal(await textOf(`a ${html} b`), 'a b', html)
  assert.equal(
    await textOf('<p hidden>an end that is left out hides nothing more<p>b'),
    'an end that is left out hides nothing more\n\nb',
  )
  assert.equal((await readHtml('<title>t</title><svg><title>x</title></svg>', BASE, 10)).title, 't')
})

test('character references are decoded, wherever a page is split', async () => {
  assert.equal(await textOf('caf&eacute; &#x1F600;&lt &amp;amp; &nosuch; &#0;'), 'café 😀< &amp; &nosuch; \ufffd')
  const pad = 'x'.repeat(64 * 1024)
  for (const cut of [1, 3, 5, 8, 12, 17, 20]) {
    const html = `${pad.slice(cut)}<a href="/&amp;y">&eacute;</a>`
    assert.match(await textOf(html), /x\[é\]\(https:\/\/site\.example\/&y\)$/, String(cut))
  }
})

test('the cost of deep, broken or unclosed content is linear', async () => {
  const many = 50_000
  assert.equal(await textOf(`${'<div>'.repeat(many)}deep`), 'deep')
  assert.equal(await textOf(`${'<a href=x>'.repeat(many)}deep`), '[deep')
  assert.equal(await textOf(`${'<b>'.repeat(many)}deep${'</i>'.repeat(many)}`), 'deep')
  assert.equal(await textOf(`${'</div>'.repeat(many)}deep<`), 'deep<')
  assert.equal(await textOf(`<p ${'a=b '.repeat(many)}>deep`), 'deep')
  const { text } = await readHtml('word '.repeat(many * 10), BASE, 100)
  assert.ok(text.length >= 100 && text.length < 70_000)
})
