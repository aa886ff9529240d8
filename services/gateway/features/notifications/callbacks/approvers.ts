import type { NotifierConfig } from '../config.ts'

/** Somebody who may decide. */
export interface Approver {
  /** `user:<name>`, as the admin API names people: whoever decides there and in a chat counts once. */
  readonly by: string
  readonly groups: readonly string[]
  /** Where; null: everywhere. */
  readonly namespaces: readonly string[] | null
}

/** How people are named in votes. */
const USER_PREFIX = 'user:'

/** Whom a chat user is (`userMap`); null: nobody who may decide. */
export function approverOf({ userMap }: NotifierConfig, chatUser: string): Approver | null {
  const mapped = Object.hasOwn(userMap, chatUser) ? userMap[chatUser] : undefined
  if (mapped === undefined) return null
  const { user, groups, namespaces } = typeof mapped === 'string' ? { ...NOWHERE_IN_PARTICULAR, user: mapped } : mapped
  const by = user.startsWith(USER_PREFIX) ? user : `${USER_PREFIX}${user}`
  return { by, groups, namespaces: namespaces.length === 0 ? null : namespaces }
}

const NOWHERE_IN_PARTICULAR = { groups: [], namespaces: [] }
