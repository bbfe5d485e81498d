#!/usr/bin/perl
# A process of an app in Perl: two tasks, one at a time. docs/adding-a-language.md describes the messages.
#   meshwork worker --app-command 'perl examples/app/worker.pl' --concurrency 1
use strict;
use warnings;
use JSON::PP;

my %tasks = (
    word_count => sub { my ($args) = @_; return scalar split ' ', $args->{text} },
    refuse     => sub { die { error => 'no retry would help', verdict => 'permanent' } },
);

# The socket is stdin. What tasks print goes to the log of the worker.
open my $socket, '+<&=', 0 or die "no socket: $!";
my $json = JSON::PP->new->utf8->canonical;

sub answer {
    my ($message) = @_;
    my $line = $json->encode($message) . "\n";
    while (length $line) {
        my $sent = syswrite $socket, $line or exit 1;
        substr $line, 0, $sent, '';
    }
}

sub run_task {
    my ($run) = @_;
    my $number = $run->{run};
    answer({ log => { run => $number, text => "attempt $run->{attempt} of $run->{id}\n" } });
    my $result = eval { [ $tasks{ $run->{type} }->($run->{payload}) ] };
    if ($result) { return answer({ done => { run => $number, result => $result->[0] } }) }
    my $failure = ref $@ ? $@ : { error => "$@" };
    answer({ failed => { run => $number, %$failure } });
}

answer({ ready => { protocol => 1, tasks => [ map { { name => $_ } } sort keys %tasks ] } });
while (my $line = <$socket>) {
    my ($kind, $message) = %{ $json->decode($line) };
    if ($kind eq 'run')  { run_task($message) }
    if ($kind eq 'stop') { exit 0 }
}
