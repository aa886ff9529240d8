import { defineBlock, key, namesProfile, requires } from '@plat/config'
import Type, { type Static } from 'typebox'
import { keyProblems } from '../../call/key-problems.ts'

/** The default profile: every detector, and every hit redacted. */
export const REDACT_ALL = 'redact-all'

/** `captureArgs` (docs/spec/gateway.md): encrypted copies of redacted arguments. */
export const captureArgsBlock = defineBlock({
  path: 'captureArgs',
  feature: 'captures',
  schema: Type.Object({
    enabled: key.flag('Encrypted redacted argument captures.'),
    dir: key.text('Required when enabled; `<dir>/<namespace>/<xx>/<argsSha256>.cap`.'),
    key: key.text('Required when enabled; URI of a customer-held AES-256-GCM key.'),
    namespaces: key.texts('Globs; default all.'),
    retentionDays: key.whole('Days that a capture is kept.', 30, 1),
    dlpProfile: key.text('Default built-in redact-all.'),
  }),
  rules: [
    requires('captureArgs', ['dir', 'key'], ({ enabled }) => enabled === true, 'with captureArgs.enabled'),
    ({ enabled, key: uri = '' }) => (enabled === true ? keyProblems('captureArgs.key', uri, 'encrypt') : []),
    namesProfile('captureArgs.dlpProfile', REDACT_ALL),
  ],
})

export type CaptureArgsConfig = Readonly<Static<typeof captureArgsBlock.schema>>
