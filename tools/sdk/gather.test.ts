import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { gather } from './gather.ts'

/** Gathers a tree of these files. */
function gathered(files: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const root = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
      writeFileSync(path.join(root, file), text)
    }
    return Object.fromEntries(gather(root, 'sdk/x/index.ts'))
  } finally {
    rmSync(root, { recursive: true })
  }
}

const core = {
  'packages/core/index.ts':
    "export { type A, a } from './deep/a.ts'\nexport { b } from './b.ts'\nexport { b as renamed } from './b.ts'\nexport { d } from './d.ts'\n",
  'packages/core/deep/a.ts': "import { b } from '../b.ts'\nexport type A = string\nexport const a: A = b\n",
  'packages/core/b.ts': "import fs from 'node:fs'\nexport const b = String(fs)\n",
  'packages/core/d.ts': "import { pino } from 'pino'\nexport const d = pino\n",
}

test('names are followed through a face to the file that holds them, and nothing else comes along', () => {
  const tree = gathered({
    ...core,
    'sdk/x/index.ts': "export { own } from './in/own.ts'\nexport type { A } from '@plat/core'\n",
    'sdk/x/in/own.ts': "import { type A, a, b as other } from '@plat/core'\nexport const own: A = a + other\n",
  })
  assert.deepEqual(tree, {
    'index.ts': "export { own } from './in/own.js'\nexport type { A } from './plat/core/deep/a.js'\n",
    'in/own.ts':
      "import { type A, a } from '../plat/core/deep/a.js'\nimport { b as other } from '../plat/core/b.js'\nexport const own: A = a + other\n",
    'plat/core/deep/a.ts': "import { b } from '../b.js'\nexport type A = string\nexport const a: A = b\n",
    'plat/core/b.ts': core['packages/core/b.ts'],
  })
})

test('a dependency that the published package lacks stops the build, and is named', () => {
  const of = (text: string) => () => gathered({ ...core, 'sdk/x/index.ts': text })
  assert.throws(of("import { d } from '@plat/core'\n"), /packages\/core\/d\.ts: imports pino, which the published/)
  assert.throws(of("import type { Log } from '@plat/process'\n"), /index\.ts: imports @plat\/process, which/)
  assert.throws(of("import { nothing } from '@plat/core'\n"), /index\.ts: @plat\/core has no "nothing"/)
  assert.throws(of("import { renamed } from '@plat/core'\n"), /@plat\/core has no "renamed"/)
  assert.throws(of("await import('./other.ts')\n"), /index\.ts: imports \.\/other\.ts when it runs/)
})
