package store

const Tries = tries
