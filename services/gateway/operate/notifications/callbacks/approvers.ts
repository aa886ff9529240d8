import type { PersonMarks } from '../../../admin/index.ts'
import type { NotifierConfig } from '../config.ts'

/** Somebody who may decide. */
export interface Approver {
  /** `user:<name>`, as the admin API names people: whoever decides there and in a chat counts once. */
  readonly by: string
  /** What identifies the person, by whatever way the person decides. */
  readonly person: string[]
  readonly groups: string[]
  /** Where; null: everywhere. */
  readonly namespaces: readonly string[] | null
}

/** How people are named in votes. */
const USER_PREFIX = 'user:'

/** Whom a chat user is (`userMap`); null: nobody who may decide. */
export function approverOf(
  { userMap }: NotifierConfig,
  chatUser: string,
  personOf: (names: readonly string[]) => PersonMarks,
): Approver | null {
  const mapped = Object.hasOwn(userMap, chatUser) ? userMap[chatUser] : undefined
  if (mapped === undefined) return null
  const { user, groups, namespaces } = typeof mapped === 'string' ? { ...NOWHERE_IN_PARTICULAR, user: mapped } : mapped
  const by = user.startsWith(USER_PREFIX) ? user : `${USER_PREFIX}${user}`
  const person = [...personOf([by.slice(USER_PREFIX.length)])]
  return { by, person, groups: [...groups], namespaces: namespaces.length === 0 ? null : namespaces }
}

const NOWHERE_IN_PARTICULAR = { groups: [], namespaces: [] }
