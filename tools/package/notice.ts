import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '@plat/core'
import type { Metafile } from 'esbuild'

/** Text of the MIT license, for libraries that name it without a file. */
const MIT = readFileSync(path.join(import.meta.dirname, 'mit-license.txt'), 'utf8').trim()

/** Header of a single file under another license than its library. */
const FILE_LICENSE = /(?:^\/\/.*\n)*^\/\/ Redistribution and use.*\n(?:^\/\/.*\n)*/m

const LICENSE_FILE = /^(?:licen[cs]e|copying|notice)(?:[-.].*)?$/i

/** A library inside a bundle. */
interface Library {
  readonly title: string
  readonly license: string
  readonly texts: readonly string[]
}

/** Returns the text of NOTICE: every library of which a bundle contains code, with its license. Throws for a library without one. */
export function noticeOf(root: string, { inputs }: Metafile): string {
  const files = new Map<string, string[]>()
  for (const file of Object.keys(inputs)) {
    const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0]
    if (folder !== undefined) files.set(folder, [...(files.get(folder) ?? []), path.resolve(root, file)])
  }
  const libraries = [...files].map(([folder, bundled]) => readLibrary(path.resolve(root, folder), bundled))
  libraries.sort((a, b) => (a.title < b.title ? -1 : 1))
  const sections = libraries.map(({ title, license, texts }) => [`${title} (${license})`, ...texts].join('\n\n'))
  const head =
    'plat is licensed under the Apache License 2.0, see LICENSE. This package contains code of these libraries.'
  return `${[head, ...sections].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

function readLibrary(folder: string, bundled: readonly string[]): Library {
  const { name, version, license, author } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
  if (typeof license !== 'string') throw new Error(`${name}: its package.json names no license`)
  const files = readdirSync(folder).filter((file) => LICENSE_FILE.test(file))
  const texts = files.sort().map((file) => readFileSync(path.join(folder, file), 'utf8').trim())
  if (texts.length === 0) texts.push(...licenseWithoutFile(license, author))
  const headers = bundled.flatMap((file) => FILE_LICENSE.exec(readFileSync(file, 'utf8'))?.[0] ?? [])
  return { title: `${name} ${version}`, license, texts: [...texts, ...new Set(headers)] }
}

function licenseWithoutFile(license: string, author: unknown): readonly string[] {
  if (license.includes('Apache-2.0')) return ['The Apache License 2.0 is the text of LICENSE.']
  if (license !== 'MIT') throw new Error(`${license}: has no text here`)
  const holder = isObject(author) ? author.name : author
  return [`Copyright (c) ${typeof holder === 'string' ? holder : 'the authors'}`, MIT]
}
