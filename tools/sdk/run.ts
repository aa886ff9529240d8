import { rmSync } from 'node:fs'
import path from 'node:path'
import { buildSdk } from './build.ts'

/** `npm run build:sdk [folder]`: writes the package that is published, ready for `npm publish sdk/typescript/dist`. */
const root = path.resolve(import.meta.dirname, '../..')
const out = path.resolve(root, process.argv[2] ?? 'sdk/typescript/dist')
rmSync(out, { recursive: true, force: true })
buildSdk(root, out)
console.log(`built ${path.relative(root, out)}`)
