import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rewriteSource } from './rewrite.ts'

const located = (source: string) => rewriteSource(source, (name) => `./data/${name.replace('./', '')}`)

test('URLs of files beside a module lead into the bundle, whatever the quotes around them hold', () => {
  assert.equal(
    located("const A = new URL('roots/', import.meta.url)\nnew Worker(new URL('./worker.ts', import.meta.url), {})"),
    "const A = new URL('./data/roots/', import.meta.url)\nnew Worker(new URL('./data/worker.ts', import.meta.url), {})",
  )
})

test('libraries that a module loads late or looks for are those of the bundle', () => {
  assert.equal(located("createRequire(import.meta.url)('re2js')"), "require('re2js')")
  assert.equal(located("import.meta.resolve('a/b')\n"), "'bundled'\n")
})

test('statements that run only when a module is the program are removed', () => {
  assert.equal(located('const a = 1\n\nif (import.meta.main) {\n  write(import.meta.dirname)\n}\n'), 'const a = 1\n\n')
})

test('a module that depends on its location in another way is refused with the line', () => {
  const lines = ['path.join(import.meta.dirname, "a")', 'new URL(`a/` + b, import.meta.url)', 'import.meta.filename']
  for (const line of lines) {
    const rewritten = located(`// import.meta.url in a comment is nothing\n${line}\n`)
    assert.ok(typeof rewritten !== 'string')
    assert.equal(rewritten.problems.length, 1)
    assert.match(rewritten.problems[0] ?? '', /^line 2: .*import\.meta/)
  }
})
