import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PAGES = globSync(['*.md', 'docs/**/*.md', 'sdk/**/*.md', 'services/**/*.md'], {
  cwd: ROOT,
  exclude: (name) => name.includes('node_modules'),
}).sort()

const readPage = (page: string) => readFileSync(path.join(ROOT, page), 'utf8')

/** Targets of relative links outside code blocks, without their fragments. */
function relativeLinks(text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`(?!\])/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target.split('#')[0] ?? '')
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target))
}

test('every relative link of a page leads to a file', () => {
  assert.ok(PAGES.length > 100)
  const broken = PAGES.flatMap((page) =>
    relativeLinks(readPage(page))
      .filter((target) => !existsSync(path.resolve(ROOT, path.dirname(page), target)))
      .map((target) => `${page}: ${target}`),
  )
  assert.deepEqual(broken, [])
})

test('the index of the documentation links every page of its folder', () => {
  const linked = new Set(relativeLinks(readPage('docs/README.md')))
  const pages = PAGES.filter((page) => path.dirname(page) === 'docs').map((page) => path.basename(page))
  assert.deepEqual(
    pages.filter((page) => page !== 'README.md' && !linked.has(page)),
    [],
  )
})

test('the glossary is sorted and defines each term once', () => {
  const terms = [...readPage('docs/glossary.md').matchAll(/^\| (?!term)([^|]+?) \|/gm)].map(([, term = '']) =>
    term.replaceAll('`', '').toLowerCase(),
  )
  assert.ok(terms.length > 60)
  assert.deepEqual(terms, [...new Set(terms)].sort())
})
